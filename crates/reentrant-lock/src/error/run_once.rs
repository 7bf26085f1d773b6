use std::fmt;

use leasehold_core::{FenceToken, LockName, lease::LossReason};

use super::{AcquireError, SucceedError};

/// Why a run did not come to a clean end; a duplicate is none of these.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunOnceError<T, E> {
    /// The run could not begin; the closure was not called.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lease was lost while the closure ran; its future was dropped, and another run may begin.
    #[error(
        "{lock:?}: the lease (fence {fence}) was lost while its closure ran, which was stopped: {reason}"
    )]
    Lost {
        /// The name of the run.
        lock: LockName,
        /// The fence of the lost lease.
        fence: FenceToken,
        /// Why it was lost.
        reason: LossReason,
    },
    /// The closure failed; the door is open again.
    #[error("{0}")]
    Body(E),
    /// The closure succeeded, but the door may be open.
    #[error("the work was done, but its door may be open")]
    Unconfirmed {
        /// What the closure returned.
        value: T,
        /// What went wrong afterwards.
        source: SucceedError,
    },
}

/// Without the value, which need not be `Debug`.
impl<T, E: fmt::Debug> fmt::Debug for RunOnceError<T, E> {
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
            Self::Unconfirmed { value: _, source } => {
                f.debug_struct("Unconfirmed").field("source", source).finish_non_exhaustive()
            }
        }
    }
}
