use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    time::Duration,
};

use leasehold_core::Replication;

use super::{guard::AllGuard, leases::AllLeases, locks::AllLocks, taking::Taking};
use crate::{
    error::{AcquireError, OptionsError, ReleaseError, WithError},
    lease::run_while_held,
    lock::Acquire,
    owner::Owner,
    wait::WaitLimit,
};

/// How to acquire several locks; await it to do so.
///
/// Its defaults are those of [`Acquire`].
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use leasehold::{LockRuntime, error::AcquireError};
///
/// let locks = LockRuntime::embedded()?;
/// let three = locks.lock("accounts/3")?.acquire().await?;
///
/// let both = locks.all(["accounts/7", "accounts/3"])?;
/// match both.acquire().wait(Duration::from_millis(20)).await {
///     Ok(_) => unreachable!("one of them is taken"),
///     Err(AcquireError::Timeout(busy)) => println!("{busy}"), // it names the lock
///     Err(other) => return Err(other.into()),
/// }
/// assert!(locks.lock("accounts/7")?.try_acquire().await?.is_some(), "all or nothing");
/// # drop(three);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "an acquire does nothing unless it is awaited"]
pub struct AcquireAll {
    locks: AllLocks,
    /// How each of them is acquired.
    how: Acquire,
    min_hold: Option<Duration>,
}

impl AcquireAll {
    pub(super) fn new(locks: &AllLocks) -> Self {
        Self { locks: locks.clone(), how: locks.first.acquire(), min_hold: None }
    }

    /// Waits for at most this long, up to 365 days, for all locks together; zero tries each once.
    /// Default: the runtime's.
    pub fn wait(self, wait: Duration) -> Self {
        Self { how: self.how.wait(wait), ..self }
    }

    /// Waits without a limit.
    pub fn wait_forever(self) -> Self {
        Self { how: self.how.wait_forever(), ..self }
    }

    /// Limits the wait without an answer, as [`Acquire::outage_patience`] does.
    pub fn outage_patience(self, patience: Duration) -> Self {
        Self { how: self.how.outage_patience(patience), ..self }
    }

    /// Sets how long each lease lives without renewal, 100 ms to 24 h. Default: the runtime's.
    ///
    /// All leases are renewed, from their grants on.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { how: self.how.ttl(ttl), ..self }
    }

    /// Sets which acknowledgements each lease needs, as [`Acquire::replication`] does.
    pub fn replication(self, replication: Replication) -> Self {
        Self { how: self.how.replication(replication), ..self }
    }

    /// Ends each lease as `Lost(MaxHold)` after this time, counted from its own grant: the first
    /// lock is granted before the last one. Default: no limit.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        Self { how: self.how.max_hold(max_hold), ..self }
    }

    /// Keeps all locks closed until this long after the last of them was granted, as
    /// [`Acquire::min_hold`] does; up to 24 h. A call that fails leaves none closed. Default: zero.
    pub fn min_hold(self, hold: Duration) -> Self {
        Self { min_hold: Some(hold), ..self }
    }

    /// Acquires for this owner, who re-enters what it holds. Default: the owner of the present
    /// [scope](Owner::scope), else a fresh one for each lock.
    ///
    /// What the owner holds already was not taken in the order of all. If it holds a lock and asks
    /// for one whose name comes before it, it may wait for another owner in a circle, until one of
    /// their waits is over. So take everything at once, or nothing else before.
    pub fn owner(self, owner: &Owner) -> Self {
        Self { how: self.how.owner(owner), ..self }
    }

    /// Acquires all locks if they are free; `None` means that another task or process holds one of
    /// them or waits for it.
    ///
    /// # Errors
    ///
    /// As [`Acquire::try_acquire`], for each lock.
    ///
    /// # Cancel safety
    ///
    /// As awaiting the acquire.
    pub async fn try_acquire(mut self) -> Result<Option<AllGuard>, AcquireError> {
        self.how.limit = WaitLimit::Try;
        match self.await {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::Timeout(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Acquires all locks, runs a closure's future under them, and releases them.
    ///
    /// As [`Acquire::with`]: the future is dropped where it stands when the first of the leases is
    /// lost.
    ///
    /// # Errors
    ///
    /// - [`WithError::Acquire`] when the locks were not acquired; the closure was not called.
    /// - [`WithError::Lost`] when a lease was lost before the future ended with a value.
    /// - [`WithError::Body`] with the closure's own error, however the release went.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and leaves the release to the runtime.
    pub async fn with<T, E, F>(self, body: impl FnOnce(AllLeases) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let guard = self.await?;
        let leases = &guard.leases;
        let ended = run_while_held(leases.lost(), || leases.loss(), body(leases.clone())).await;
        let ended = ended.map_err(WithError::Lost)?;
        // What was done under the leases is done, whatever the server says.
        let _: Result<_, ReleaseError> = guard.release().await;
        ended.map_err(WithError::Body)
    }

    fn check(&self) -> Result<(), AcquireError> {
        if self.min_hold > Some(OptionsError::MAX_CLOSED) {
            let lock = self.locks.first.name().clone();
            return Err(AcquireError::Options { lock, option: OptionsError::MinHold });
        }
        Ok(())
    }
}

impl IntoFuture for AcquireAll {
    type Output = Result<AllGuard, AcquireError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Acquires all locks, waiting for each where that is needed.
    ///
    /// # Errors
    ///
    /// As awaiting an [`Acquire`]; the error names the lock that was not acquired. What was acquired
    /// before it is given back by the runtime. Beyond that,
    /// [`AcquireError::Lost`] when one of the leases was lost before the last lock was there.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point gives everything back.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            self.check()?;
            let Self { locks, how, min_hold } = self;
            Taking::new(locks, how, min_hold).run().await
        })
    }
}
