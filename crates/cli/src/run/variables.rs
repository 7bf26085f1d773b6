use super::surrounding::{Named, Surrounding};

/// The names of the locks.
pub(super) const LOCK: &str = "LEASEHOLD_LOCK";
/// Their fences.
pub(super) const FENCE: &str = "LEASEHOLD_FENCE";
/// The ids of their leases.
pub(super) const LEASE: &str = "LEASEHOLD_LEASE";
/// The other leases of the runs around the command, in JSON: what runs in it may re-enter them, too.
pub(super) const AROUND: &str = "LEASEHOLD_AROUND";

/// What a command learns of its leases: a line for each lock, in the order of the command line.
pub(super) fn variables(leases: &[Named], around: &Surrounding) -> [(&'static str, String); 4] {
    let joined =
        |show: fn(&Named) -> String| leases.iter().map(show).collect::<Vec<_>>().join("\n");
    [
        (LOCK, joined(|(name, _)| name.to_string())),
        (FENCE, joined(|(_, stamp)| stamp.fence.to_string())),
        (LEASE, joined(|(_, stamp)| stamp.lease.to_string())),
        (AROUND, around.without(leases).to_json()),
    ]
}
