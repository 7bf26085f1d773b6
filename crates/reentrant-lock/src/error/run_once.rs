use super::{AcquireError, LeaseLost};

/// Why a run did not come to a clean end; a duplicate is none of these.
///
/// Work that ended while its lease was believed is no error, even when the server has not confirmed
/// that the lock is closed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RunOnceError<E> {
    /// The run could not begin; the closure was not called.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lease was lost before the closure's future ended; the future was dropped, and another
    /// run may begin.
    #[error("{0}; its closure was stopped, and another run may begin")]
    Lost(LeaseLost),
    /// The closure failed; the lock is open again.
    #[error("{0}")]
    Body(E),
}
