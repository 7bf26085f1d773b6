use leasehold_core::{FenceToken, LockName, StoreError, lease::LossReason};

/// Why a lease was not re-entered.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReenterError {
    /// The lease was lost; re-entry never grants a new one.
    #[error("lock {lock:?}: the lease (fence {fence}) was lost: {reason}; stop, and acquire anew")]
    Lost {
        /// The lock.
        lock: LockName,
        /// The fence of the lost lease.
        fence: FenceToken,
        /// Why it was lost.
        reason: LossReason,
    },
    /// The lease has too many nested holds.
    #[error("lock {lock:?}: re-entered too often; a guard is never dropped")]
    TooManyHolds {
        /// The lock.
        lock: LockName,
    },
    /// The store refused in a way that trying again does not mend.
    #[error(transparent)]
    Store(#[from] StoreError),
}
