use super::{AcquireError, LeaseLost};

/// Why a closure under a lock did not run to a clean end: that of a `with`, or of a `once`.
///
/// Work that ended while its lease was believed is no error, however its release went.
///
/// `?` turns it into `anyhow::Error` or `Box<dyn Error>`, whatever the body's error is: also a `String`, an
/// `anyhow::Error` or a `Box<dyn Error>`, which are no errors of their own. The price is that [`source`] tells
/// nothing of the body (ADR 0019). [`into_cause`](Self::into_cause) keeps the body's error as it is, with its
/// sources.
///
/// [`source`]: std::error::Error::source
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

    /// The error that was met, as one type of the caller's: an acquire's, a loss, or the body's own with its
    /// sources.
    ///
    /// ```
    /// # use leasehold::{ReentrantLock, error::WithError};
    /// # async fn pay() -> Result<(), std::io::Error> { Ok(()) }
    /// async fn settle(lock: &ReentrantLock) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     lock.acquire().with(|_lease| pay()).await.map_err(WithError::into_cause)
    /// }
    /// ```
    pub fn into_cause<C>(self) -> C
    where
        C: From<E> + From<AcquireError> + From<LeaseLost>,
    {
        match self {
            Self::Acquire(error) => error.into(),
            Self::Lost(lost) => lost.into(),
            Self::Body(error) => error.into(),
        }
    }
}
