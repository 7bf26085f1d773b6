use leasehold_core::{
    Fence, LockName, StoreError,
    lease::{LeaseEnd, LossReason},
};
use leasehold_watchdog::HeldLease;

use super::AcquireError;

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
    pub fence: Fence,
    /// Why it was lost.
    pub reason: LossReason,
}

impl LeaseLost {
    pub(crate) fn new(lease: &HeldLease, reason: LossReason) -> Self {
        Self { lock: lease.name().clone(), fence: lease.fence(), reason }
    }

    /// What the end of a lease is to those who still need it.
    pub(crate) fn at_end(lease: &HeldLease, end: LeaseEnd) -> Self {
        Self::new(
            lease,
            match end {
                LeaseEnd::Lost(reason) => reason,
                LeaseEnd::Released => LossReason::Gone,
            },
        )
    }
}

/// Why a lease was not re-entered.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReenterError {
    /// The lease was lost; re-entry never grants a new one.
    #[error("{0}; stop, and acquire anew")]
    Lost(LeaseLost),
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

/// Why a release did not end a lease as it should. What was done under the lease is done.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lease had been lost before: what was done under it may have met another holder.
    #[error("{0}; it was lost before its release: rely on the fence check of your storage")]
    Lost(LeaseLost),
    /// The lease was held to the end, but the server has not confirmed its release. The runtime
    /// repeats it, unless the server refuses for good. Once the server hears, the lock is free, or
    /// stays closed for its [`min_hold`](crate::Acquire::min_hold) or for the window of a
    /// [`Once`](crate::Once); if it never does, the lock is free when the ttl ends.
    #[error(
        "lock {lock:?}: the server has not confirmed the release of fence {fence}; {}: {error}",
        what_follows(*keeps)
    )]
    Unconfirmed {
        /// The lock.
        lock: LockName,
        /// The fence of the lease.
        fence: Fence,
        /// Whether the lock is to stay closed for a while.
        keeps: bool,
        /// Why the server did not confirm it.
        error: StoreError,
    },
}

fn what_follows(keeps: bool) -> &'static str {
    if keeps {
        "the lock stays closed as it should once the server has the release, and otherwise opens when the ttl ends: what was \
         done is done, let the storage refuse a second write"
    } else {
        "nothing needs to be done: the lock is free once the server has the release, or when the ttl ends"
    }
}

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
