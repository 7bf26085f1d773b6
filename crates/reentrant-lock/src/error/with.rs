use super::{AcquireError, LeaseLost};

/// Why a closure under a lock did not run to a clean end.
///
/// Work that ended while its lease was believed is no error, however its release went.
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

impl<E> WithError<WithError<E>> {
    /// The error of a `with` in whose closure another `with` re-enters the lock, as one error: what
    /// the inner one met. A re-entry after the loss is [`Lost`](Self::Lost), as the loss is.
    ///
    /// ```
    /// use leasehold::{LockRuntime, error::WithError};
    ///
    /// # async fn pay() -> Result<(), std::io::Error> { Ok(()) }
    /// async fn settle(locks: &LockRuntime) -> Result<(), WithError<std::io::Error>> {
    ///     let (lock, owner) = (locks.lock("accounts/7").unwrap(), locks.owner());
    ///     let outer = lock.acquire().owner(&owner).with(|_lease| async {
    ///         lock.acquire().owner(&owner).with(|_lease| pay()).await
    ///     });
    ///     outer.await.map_err(WithError::flatten)
    /// }
    /// ```
    pub fn flatten(self) -> WithError<E> {
        match self {
            Self::Acquire(error) => WithError::Acquire(error),
            Self::Lost(lost) | Self::Body(WithError::Acquire(AcquireError::Lost(lost))) => {
                WithError::Lost(lost)
            }
            Self::Body(error) => error,
        }
    }
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
