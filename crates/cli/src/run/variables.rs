use super::surrounding::Named;

/// The names of the locks.
pub(super) const LOCK: &str = "LEASEHOLD_LOCK";
/// Their fences.
pub(super) const FENCE: &str = "LEASEHOLD_FENCE";
/// The ids of their leases.
pub(super) const LEASE: &str = "LEASEHOLD_LEASE";

/// What a command learns of its leases: a line for each lock, in the order of the command line.
pub(super) fn variables(leases: &[Named]) -> [(&'static str, String); 3] {
    let joined =
        |show: fn(&Named) -> String| leases.iter().map(show).collect::<Vec<_>>().join("\n");
    [
        (LOCK, joined(|(name, _)| name.to_string())),
        (FENCE, joined(|(_, stamp)| stamp.fence.to_string())),
        (LEASE, joined(|(_, stamp)| stamp.lease.to_string())),
    ]
}
