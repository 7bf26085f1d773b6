use std::fmt;

use leasehold_core::{FenceToken, LockName, lease::LossReason};

use super::{AcquireError, ReleaseError};

/// Why a closure under a lock did not run to a clean end.
///
/// It passes on the closure's error as it is, whatever its type; [`into_body`](Self::into_body)
/// takes it out again.
#[derive(thiserror::Error)]
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
    #[error("the work was done, but its lock was not released as it should be")]
    Release {
        /// What the closure returned.
        value: T,
        /// What went wrong afterwards.
        source: ReleaseError,
    },
}

impl<T, E> WithError<T, E> {
    /// The closure's own error, if it is one.
    ///
    /// # Errors
    ///
    /// Any other error, unchanged.
    pub fn into_body(self) -> Result<E, Self> {
        match self {
            Self::Body(error) => Ok(error),
            other => Err(other),
        }
    }
}

/// Without the value, which need not be `Debug`.
impl<T, E: fmt::Debug> fmt::Debug for WithError<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => f.debug_tuple("Acquire").field(error).finish(),
            Self::Lost { lock, fence, reason } => f
                .debug_struct("Lost")
                .field("lock", lock)
                .field("fence", fence)
                .field("reason", reason)
                .finish(),
            Self::Body(error) => f.debug_tuple("Body").field(error).finish(),
            Self::Release { value: _, source } => {
                f.debug_struct("Release").field("source", source).finish_non_exhaustive()
            }
        }
    }
}
