use leasehold_core::{FenceToken, LockName, lease::LossReason};

use super::{AcquireError, ReleaseError};

/// Why a closure under a lock did not run to a clean end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WithError<T, E> {
    /// The lock was not acquired; the closure was not called.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lease was lost while the closure ran; its future was dropped.
    #[error(
        "lock {lock:?}: the lease (fence {fence}) was lost while its closure ran, which was stopped: {reason}"
    )]
    Lost {
        /// The lock.
        lock: LockName,
        /// The fence of the lost lease.
        fence: FenceToken,
        /// Why it was lost.
        reason: LossReason,
    },
    /// The closure failed; the lock was released.
    #[error("{0}")]
    Body(E),
    /// The closure succeeded, but the release did not.
    #[error("the work was done, but: {source}")]
    Release {
        /// What the closure returned.
        value: T,
        /// What went wrong afterwards.
        source: ReleaseError,
    },
}
