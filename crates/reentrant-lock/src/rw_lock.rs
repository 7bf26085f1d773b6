use std::{
    convert::Infallible,
    fmt,
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use leasehold_core::{LockName, Mode};

use crate::{
    acquire::{Acquire, How},
    engine::Engine,
    error::{AcquireError, ReleaseError, WithError},
    lease::run_while_held,
    lock::ReentrantLock,
    owner::Owner,
    read_guard::{ReadGuard, ReadLease},
    wait::WaitLimit,
};

/// A lock that many may read at once, and one may write.
///
/// It is the lock of the same name: a [`ReentrantLock`] and [`write`](Self::write) exclude each other and all
/// readers. Writers are served in the order in which they came. Readers and writers take turns: when a writer is done, all
/// readers who wait are let in, and when they are done, the next writer. So neither starves.
///
/// All readers of one process share one lease, whatever their number. It is renewed, and its loss is told to each of
/// them. A process that dies holds a writer up for one ttl at most.
///
/// ```
/// use leasehold::LockRuntime;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = LockRuntime::embedded()?;
/// let prices = locks.rw_lock("prices")?;
/// let (one, other) = (prices.read().await?, prices.read().await?); // together
/// assert_eq!(one.fence(), other.fence());
/// assert!(prices.write().try_acquire().await?.is_none());
/// drop((one, other));
///
/// let guard = prices.write().await?; // alone
/// assert!(prices.read().try_read().await?.is_none());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// A quorum has no readers: there, every read fails as [`AcquireError::Store`].
#[derive(Debug, Clone)]
pub struct RwLock {
    lock: ReentrantLock,
}

impl RwLock {
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, name: LockName) -> Self {
        Self { lock: ReentrantLock::new(engine, name) }
    }

    /// Returns its name.
    pub fn name(&self) -> &LockName {
        self.lock.name()
    }

    /// The same lock, whose metrics count under a class; see [`ReentrantLock::class`].
    #[must_use]
    pub fn class(self, class: impl AsRef<str>) -> Self {
        Self { lock: self.lock.class(class) }
    }

    /// The same lock, which this process may keep to itself for this long while nobody here uses it; see
    /// [`ReentrantLock::keep_idle`]. Reads then need no command until a writer comes.
    #[must_use]
    pub fn keep_idle(self, time: Duration) -> Self {
        Self { lock: self.lock.keep_idle(time) }
    }

    /// Acquires it to read, together with others.
    pub fn read(&self) -> Read {
        let how = How { mode: Mode::Read, ..How::of(self.lock.clone()) };
        Read { how: Some(how), call: Box::pin(pending()) }
    }

    /// Acquires it to write, alone.
    pub fn write(&self) -> Acquire {
        self.lock.acquire()
    }
}

/// The future of a [`ReadGuard`]: how to acquire a lock to read, and the call itself once it is polled.
///
/// Without further calls it waits for the runtime's default time (30 s).
///
/// # Errors
///
/// As those of an [`Acquire`].
///
/// # Cancel safety
///
/// Dropping the future leaves the queue and leaves nothing behind.
#[must_use = "a read does nothing unless it is awaited"]
pub struct Read {
    /// `None` once it was polled.
    how: Option<How>,
    call: BoxFuture<'static, Result<ReadGuard, AcquireError>>,
}

impl Read {
    fn set(mut self, set: impl FnOnce(&mut How)) -> Self {
        if let Some(how) = &mut self.how {
            set(how);
        }
        self
    }

    /// Waits for at most this long, up to 365 days; zero tries once. Default: the runtime's.
    pub fn wait(self, wait: Duration) -> Self {
        self.set(|how| how.limit = WaitLimit::For(wait))
    }

    /// Waits without a limit.
    pub fn wait_forever(self) -> Self {
        self.set(|how| how.limit = WaitLimit::Forever)
    }

    /// How long to wait while the server does not answer; see [`Acquire::outage_patience`].
    pub fn outage_patience(self, patience: Duration) -> Self {
        self.set(|how| how.outage_patience = patience)
    }

    /// After what time the call is reported if it still waits; see [`Acquire::blocked_after`].
    pub fn blocked_after(self, time: Duration) -> Self {
        self.set(|how| how.blocked_after = time)
    }

    /// Reads for an owner, who may read again at once, also while a writer waits, and while it writes. An owner that
    /// reads and asks to write is refused, as [`AcquireError::WouldDeadlock`].
    pub fn owner(self, owner: &Owner) -> Self {
        self.set(|how| how.owner = Some(owner.clone()))
    }

    /// Reads if that needs no wait; `None` if a writer has the lock or waits for it.
    ///
    /// # Errors
    ///
    /// As those of an [`Acquire`], without `Timeout`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn try_read(self) -> Result<Option<ReadGuard>, AcquireError> {
        match self.set(|how| how.limit = WaitLimit::Try).await {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::Timeout(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a closure while the lock is held to read, and drops its future if the lease is lost; see
    /// [`Acquire::with`].
    ///
    /// # Errors
    ///
    /// [`WithError`]: the lock was not acquired, the lease was lost, or the closure failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops that of the closure, and gives the lock back.
    pub async fn with<T, E, F>(self, body: impl FnOnce(ReadLease) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let guard = self.await?;
        let lease = guard.lease();
        let ended =
            run_while_held(lease.0.until_lost(), || lease.0.loss(), body(lease.clone())).await;
        let ended = ended.map_err(WithError::Lost)?;
        // What was done under the lease is done, whatever the server says.
        let _: Result<_, ReleaseError> = guard.release().await;
        ended.map_err(WithError::Body)
    }

    /// As [`with`](Self::with), of a closure that cannot fail.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with).
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    pub async fn with_ok<T, F>(
        self,
        body: impl FnOnce(ReadLease) -> F,
    ) -> Result<T, WithError<Infallible>>
    where
        F: Future<Output = T>,
    {
        self.with(async |lease| Ok(body(lease).await)).await
    }
}

impl Future for Read {
    type Output = Result<ReadGuard, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(how) = self.how.take() {
            self.call = Box::pin(read(how));
        }
        let polled = self.call.as_mut().poll(cx);
        if polled.is_ready() {
            // Polled once more, it stays pending.
            self.call = Box::pin(pending());
        }
        polled
    }
}

async fn read(how: How) -> Result<ReadGuard, AcquireError> {
    let mut call = how.begin()?;
    let guard = call.run().await?;
    Ok(ReadGuard::new(guard, call.by.as_ref()))
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").field("how", &self.how).finish_non_exhaustive()
    }
}
