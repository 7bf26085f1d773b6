use leasehold_redis::Endpoint;

/// The address of a node of a simulated world.
pub(in crate::sim) fn place_of(node: usize) -> Endpoint {
    Endpoint { host: "node".into(), port: u16::try_from(node + 1).expect("there are few nodes") }
}

/// The node at an address.
pub(in crate::sim) fn node_at(place: &Endpoint) -> usize {
    usize::from(place.port) - 1
}
