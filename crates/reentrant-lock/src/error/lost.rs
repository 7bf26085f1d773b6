use leasehold_core::{FenceToken, LockName, lease::LossReason};
use leasehold_watchdog::HeldLease;

/// A lease that was lost: its lock, its fence, and why.
///
/// What was done under it may have met another holder: rely on the fence check of the storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lock {lock:?}: the lease (fence {fence}) was lost: {reason}")]
#[non_exhaustive]
pub struct LeaseLost {
    /// The lock.
    pub lock: LockName,
    /// The fence of the lost lease.
    pub fence: FenceToken,
    /// Why it was lost.
    pub reason: LossReason,
}

impl LeaseLost {
    pub(crate) fn new(lease: &HeldLease, reason: LossReason) -> Self {
        Self { lock: lease.name().clone(), fence: lease.fence(), reason }
    }
}
