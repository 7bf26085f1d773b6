use super::{AcquireError, LeaseLost};

/// Why a closure under a lock did not run to a clean end.
///
/// Work that ended while its lease was believed is no error, however its release went. The
/// closure's error is passed on as it is, whatever its type; [`into_body`](Self::into_body) takes
/// it out again.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WithError<E> {
    /// The lock was not acquired; the closure was not called.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lease was lost before the closure's future ended; the future was dropped.
    #[error("{0}; its closure was stopped")]
    Lost(LeaseLost),
    /// The closure failed; the lock was released.
    #[error("{0}")]
    Body(E),
}

impl<E> WithError<E> {
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
