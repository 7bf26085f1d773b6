use std::{
    collections::BTreeSet,
    fmt,
    future::{Future, pending},
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{
    future::BoxFuture,
    stream::{FuturesUnordered, StreamExt},
};
use leasehold_core::{LockName, NameError, Replication, lease::LossReason};
use tokio::select;

use super::guard::{AllGuard, AllLeases};
use crate::{
    acquire::{Acquire, How, check_min_hold},
    engine::Engine,
    error::{AcquireError, LeaseLost, ReleaseError, WithError},
    guard::Guard,
    lease::run_while_held,
    lock::ReentrantLock,
    owner::Owner,
    wait::WaitLimit,
};

/// Several locks, which are taken together; see `LockRuntime::all`.
///
/// Cheap to clone. Each is the same lock as that of its name alone.
#[derive(Debug, Clone)]
pub struct AllLocks {
    /// The first lock; the others have its settings.
    first: ReentrantLock,
    /// All names, each once, in the order in which they are taken.
    names: Arc<[LockName]>,
}

impl AllLocks {
    /// Some locks of a runtime.
    ///
    /// # Errors
    ///
    /// [`NameError::None`] if there is no name.
    #[doc(hidden)]
    pub fn new(engine: &Arc<Engine>, mut names: Vec<LockName>) -> Result<Self, NameError> {
        let mut known = BTreeSet::new();
        names.retain(|name| known.insert(name.clone()));
        (engine.rules.orders)(&mut names);
        let first = names.first().cloned().ok_or(NameError::None)?;
        Ok(Self { first: ReentrantLock::new(Arc::clone(engine), first), names: names.into() })
    }

    /// Counts the locks under a class in metrics, each as a lock of its own.
    #[must_use]
    pub fn class(self, class: impl AsRef<str>) -> Self {
        Self { first: self.first.class(class), ..self }
    }

    /// Keeps each of the locks idle as [`ReentrantLock::keep_idle`] says.
    #[must_use]
    pub fn keep_idle(self, time: Duration) -> Self {
        Self { first: self.first.keep_idle(time), ..self }
    }

    /// Returns the names of the locks, in the order in which they are taken: that of their bytes.
    pub fn names(&self) -> &[LockName] {
        &self.names
    }

    /// Makes an acquire of all locks that waits, to be configured and awaited.
    pub fn acquire(&self) -> AcquireAll {
        let how = HowAll { locks: self.clone(), how: How::of(self.first.clone()), min_hold: None };
        AcquireAll { how: Some(how), call: Box::pin(pending()) }
    }

    /// Acquires all locks if they are free; see [`AcquireAll::try_acquire`].
    ///
    /// # Errors
    ///
    /// As [`AcquireAll::try_acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`AcquireAll::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<AllGuard>, AcquireError> {
        self.acquire().try_acquire().await
    }

    /// Runs a closure while holding all locks; see [`AcquireAll::with`].
    ///
    /// # Errors
    ///
    /// As [`AcquireAll::with`].
    ///
    /// # Cancel safety
    ///
    /// As [`AcquireAll::with`].
    pub async fn with<T, E, F>(&self, body: impl FnOnce(AllLeases) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.acquire().with(body).await
    }
}

/// The future of a guard of several locks: how to acquire them, and the call itself once it is polled.
///
/// Its defaults are those of [`Acquire`].
///
/// # Errors
///
/// As those of an [`Acquire`]; the error names the lock that was not acquired. What was acquired
/// before it is given back by the runtime. Beyond that, [`AcquireError::Lost`] when one of the leases
/// was lost before the last lock was there.
///
/// # Cancel safety
///
/// Dropping the future at any point gives everything back.
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
#[must_use = "an acquire does nothing unless it is awaited"]
pub struct AcquireAll {
    // As in an `Acquire`.
    how: Option<HowAll>,
    call: BoxFuture<'static, Result<AllGuard, AcquireError>>,
}

/// How to acquire several locks.
#[derive(Debug)]
struct HowAll {
    locks: AllLocks,
    /// How each of them is acquired.
    how: How,
    min_hold: Option<Duration>,
}

impl AcquireAll {
    fn set(mut self, set: impl FnOnce(&mut HowAll)) -> Self {
        if let Some(how) = &mut self.how {
            set(how);
        }
        self
    }

    /// Waits for at most this long, up to 365 days, for all locks together; zero tries each once.
    /// Default: the runtime's.
    pub fn wait(self, wait: Duration) -> Self {
        self.set(|all| all.how.limit = WaitLimit::For(wait))
    }

    /// Waits without a limit.
    pub fn wait_forever(self) -> Self {
        self.set(|all| all.how.limit = WaitLimit::Forever)
    }

    /// Limits the wait without an answer, as [`Acquire::outage_patience`] does.
    pub fn outage_patience(self, patience: Duration) -> Self {
        self.set(|all| all.how.outage_patience = patience)
    }

    /// Sets after what time a call that waits is reported, as [`Acquire::blocked_after`] does; each
    /// lock has a wait of its own.
    pub fn blocked_after(self, time: Duration) -> Self {
        self.set(|all| all.how.blocked_after = time)
    }

    /// Sets how long each lease lives without renewal, 100 ms to 24 h. Default: the runtime's.
    ///
    /// All leases are renewed, from their grants on.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.set(|all| all.how.ttl = Some(ttl))
    }

    /// Sets which acknowledgements each lease needs, as [`Acquire::replication`] does.
    pub fn replication(self, replication: Replication) -> Self {
        self.set(|all| all.how.replication = Some(replication))
    }

    /// Ends each lease as `Lost(MaxHold)` after this time, counted from its own grant: the first
    /// lock is granted before the last one. Default: no limit.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.set(|all| all.how.max_hold = Some(max_hold))
    }

    /// Keeps all locks closed until this long after the last of them was granted, as
    /// [`Acquire::min_hold`] does; up to 24 h. A call that fails leaves none closed. Default: zero.
    pub fn min_hold(self, hold: Duration) -> Self {
        self.set(|all| all.min_hold = Some(hold))
    }

    /// Acquires for this owner, who re-enters what it holds. Default: the owner of the present
    /// [scope](Owner::scope), else a fresh one for each lock.
    ///
    /// What the owner holds already was not taken in the order of all. If it holds a lock and asks
    /// for one whose name comes before it, it may wait for another owner in a circle, until one of
    /// their waits is over. So take everything at once, or nothing else before.
    pub fn owner(self, owner: &Owner) -> Self {
        self.set(|all| all.how.owner = Some(owner.clone()))
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
    pub async fn try_acquire(self) -> Result<Option<AllGuard>, AcquireError> {
        match self.set(|all| all.how.limit = WaitLimit::Try).await {
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
}

impl HowAll {
    // ADR 0021
    async fn run(self) -> Result<AllGuard, AcquireError> {
        let Self { locks, how, min_hold } = self;
        let engine = &locks.first.engine;
        if let Some(hold) = min_hold
            && let Err(option) = check_min_hold(hold, engine.store.longest_ttl())
        {
            return Err(AcquireError::Options { lock: locks.first.name().clone(), option });
        }
        let started = engine.clock.now();
        let so_far = || engine.clock.now().saturating_since(started);
        let gives_back = engine.rules.gives_back;
        let mut taken = Taken { guards: Vec::with_capacity(locks.names.len()), gives_back };
        let mut lost = FuturesUnordered::new();
        for name in &*locks.names {
            let mut one = how.clone();
            one.lock.name = name.clone();
            if let WaitLimit::For(wait) = how.limit {
                // One wait is for all.
                one.limit = WaitLimit::For(wait.saturating_sub(so_far()));
            }
            let guard = select! {
                biased;
                guard = Acquire::<Guard>::new(one) => guard,
                Some(first) = lost.next() => Err(lost_before(engine, first)),
            };
            let guard = guard.map_err(|mut error| {
                match &mut error {
                    AcquireError::Timeout(timeout) => timeout.waited = so_far(),
                    AcquireError::Unavailable(unavailable) => unavailable.waited = so_far(),
                    _ => {}
                }
                error
            })?;
            let taken_lease = guard.lease();
            lost.push(async move { taken_lease.until_lost().await });
            taken.guards.push(guard);
        }
        let leases = AllLeases(taken.guards.iter().map(Guard::lease).collect());
        if let Some(hold) = min_hold {
            // Not before: a call that fails leaves no lock closed.
            let until = engine.clock.now() + hold;
            for lease in leases.iter() {
                let _ = lease.0.close_if_held(until);
            }
        }
        match leases.loss() {
            Some(first) => Err(lost_before(engine, first)),
            None => Ok(AllGuard { leases, guards: mem::take(&mut taken.guards) }),
        }
    }
}

impl Future for AcquireAll {
    type Output = Result<AllGuard, AcquireError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(how) = self.how.take() {
            self.call = Box::pin(how.run());
        }
        let polled = self.call.as_mut().poll(cx);
        if polled.is_ready() {
            // Polled once more, it stays pending.
            self.call = Box::pin(pending());
        }
        polled
    }
}

impl fmt::Debug for AcquireAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireAll").field("how", &self.how).finish_non_exhaustive()
    }
}

/// The error of a call that lost one of its leases before it had the last lock.
fn lost_before(engine: &Engine, loss: LeaseLost) -> AcquireError {
    if loss.reason == LossReason::Shutdown && engine.ending.refuses() {
        return AcquireError::ShutDown { lock: loss.lock, draining: engine.ending.is_draining() };
    }
    AcquireError::Lost(loss)
}

/// What was taken so far; dropped, it is given back, the last one first.
struct Taken {
    guards: Vec<Guard>,
    gives_back: fn(bool) -> bool,
}

impl Drop for Taken {
    fn drop(&mut self) {
        while let Some(guard) = self.guards.pop() {
            if (self.gives_back)(false) {
                drop(guard);
            } else {
                mem::forget(guard);
            }
        }
    }
}
