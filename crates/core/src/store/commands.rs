use std::time::Duration;

use crate::{
    clock::Instant,
    lease::HoldUpdate,
    words::{AcquisitionId, FenceToken, LockName, RuntimeLabel, Ttl},
};

/// Asks for a lock, by acquisition id: a repeat is answered with the same grant.
#[derive(Debug, Clone, Copy)]
pub struct Acquire<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// Who asks; never used for another acquisition.
    pub id: AcquisitionId,
    /// How long the lease lives without renewal.
    pub ttl: Ttl,
    /// The largest token that the asking runtime has seen for this name.
    pub watermark: Option<FenceToken>,
    /// The asking runtime's label, kept with the lease.
    pub label: &'a RuntimeLabel,
    /// When the answer is no longer of use.
    pub deadline: Instant,
}

/// Tells the absolute number of holds of a lease, and extends it.
#[derive(Debug, Clone, Copy)]
pub struct Hold<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The fence of the lease.
    pub fence: FenceToken,
    /// The holds, with the number of this change.
    pub update: HoldUpdate,
    /// The ttl to which the lease is extended.
    pub ttl: Ttl,
    /// When the answer is no longer of use.
    pub deadline: Instant,
}

/// Ends a lease.
#[derive(Debug, Clone, Copy)]
pub struct Release<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The fence of the lease.
    pub fence: FenceToken,
    /// Instead of ending it, keep the lease closed for exactly this long, once; stores take it
    /// from [`Release::keep_in_range`].
    pub keep: Option<Duration>,
    /// When the answer is no longer of use.
    pub deadline: Instant,
}

impl Release<'_> {
    /// How long to keep the lease closed: in whole milliseconds, and moved to the nearer end of
    /// the range from 1 ms to [`Ttl::MAX`], so that every store keeps it equally long.
    pub fn keep_in_range(&self) -> Option<Duration> {
        let range = |keep: Duration| keep.clamp(Duration::from_millis(1), Ttl::MAX);
        self.keep.map(|keep| whole_millis(range(keep)))
    }
}

/// A time without its fraction of a millisecond, as Redis counts it.
pub(crate) fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Extends one lease of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The lock.
    pub name: LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The fence of the lease.
    pub fence: FenceToken,
    /// The ttl to which the lease is extended.
    pub ttl: Ttl,
}

/// Takes back an acquisition whose outcome nobody awaits any more.
#[derive(Debug, Clone, Copy)]
pub struct Withdraw<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition to take back.
    pub id: AcquisitionId,
    /// When the answer is no longer of use.
    pub deadline: Instant,
}

/// Ends somebody else's lease, exactly the one that was inspected.
#[derive(Debug, Clone, Copy)]
pub struct ForceRelease<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition that was seen holding it.
    pub id: AcquisitionId,
    /// The fence that was seen.
    pub fence: FenceToken,
    /// When the answer is no longer of use.
    pub deadline: Instant,
}
