use std::{
    convert::Infallible,
    fmt,
    future::{Future, pending},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use leasehold_core::{Mode, Replication, RuntimeLabel, Terms, Ttl};

use crate::{
    error::{AcquireError, OptionsError, ReleaseError, WithError},
    guard::{AcquiredGuard, Guard},
    lease::run_while_held,
    lock::ReentrantLock,
    owner::{Caller, Owned, Owner},
    timing::Timing,
    wait::{AcquireCall, WaitLimit},
};

/// The future of a guard: how to acquire a lock, and the call itself once it is polled.
///
/// Without further calls it waits for the runtime's default time (30 s), with the runtime's
/// default ttl (30 s), renewed for as long as the guard lives, for a fresh owner. What was set here
/// and on the lock is checked when it is polled first; what is set later changes nothing.
///
/// # Errors
///
/// - [`AcquireError::Timeout`] when the wait was over, and the last word about the lock was
///   that it is taken.
/// - [`AcquireError::Unavailable`] when the server did not answer for the outage patience; or
///   when the last command for the lock had failed or was not answered at the end of the wait.
/// - [`AcquireError::Lost`] when the owner held the lock, and lost it.
/// - [`AcquireError::Store`] when the store failed in a way that waiting does not mend, and in a
///   fork of the process that made the runtime.
/// - [`AcquireError::Options`] and [`AcquireError::ForeignOwner`] for bad input.
/// - [`AcquireError::WouldDeadlock`] when the owner reads the lock, and asks to write.
/// - [`AcquireError::TooManyHolds`] when the owner re-entered it too often.
/// - [`AcquireError::ShutDown`] when the runtime was shut down.
///
/// # Cancel safety
///
/// Dropping the future at any point takes its effect back; a waiter that comes back queues
/// anew.
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
/// let lock = locks.lock("orders/42")?;
/// let guard = lock.acquire().ttl(Duration::from_secs(10)).max_hold(Duration::from_secs(60)).await?;
///
/// match lock.acquire().wait(Duration::from_millis(20)).await {
///     Ok(_) => unreachable!("it is taken"),
///     Err(AcquireError::Timeout(timeout)) => println!("busy: {timeout}"),
///     Err(AcquireError::Unavailable(outage)) => println!("the server does not answer: {outage}"),
///     Err(other) => return Err(other.into()),
/// }
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[must_use = "an acquire does nothing unless it is awaited"]
pub struct Acquire<G = Guard> {
    /// `None` once it was polled.
    how: Option<How>,
    /// The call, once it was polled; before, a future without a state, for which nothing is allocated.
    call: BoxFuture<'static, Result<G, AcquireError>>,
}

/// How to acquire a lock.
#[derive(Debug, Clone)]
pub(crate) struct How {
    pub(crate) lock: ReentrantLock,
    pub(crate) mode: Mode,
    pub(crate) limit: WaitLimit,
    pub(crate) outage_patience: Duration,
    pub(crate) blocked_after: Duration,
    pub(crate) ttl: Option<Duration>,
    pub(crate) replication: Option<Replication>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) min_hold: Option<Duration>,
    /// What others see as the holder; `None` for the runtime's label.
    pub(crate) label: Option<RuntimeLabel>,
    pub(crate) renews: bool,
    pub(crate) owner: Option<Owner>,
}

impl<G: AcquiredGuard> Acquire<G> {
    pub(crate) fn new(how: How) -> Self {
        Self { how: Some(how), call: Box::pin(pending()) }
    }

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

    /// Fails as [`Unavailable`](AcquireError::Unavailable) after this long without any answer of
    /// the server, at least 10 ms, and never later than the wait ends. Default: the runtime's.
    ///
    /// In an outage it counts from the beginning, also if the call comes later: once it is over, the call
    /// fails within 100 ms, or within four usual round trips if that is longer. Time that a lock is taken
    /// does not count: while the server answers, the wait goes on.
    pub fn outage_patience(self, patience: Duration) -> Self {
        self.set(|how| how.outage_patience = patience)
    }

    /// Sets after what time this call is reported in the log if it still waits, at least 100 ms;
    /// `Duration::MAX` means never. Default: the runtime's, 10 s.
    ///
    /// For waits that are meant to be long, such as those of the followers of a leader: nothing is
    /// wrong with them. The builder's `blocked_after` says what is reported.
    pub fn blocked_after(self, time: Duration) -> Self {
        self.set(|how| how.blocked_after = time)
    }

    /// Acquires for this owner, who re-enters what it holds; one who reads enters also while a writer waits. Default: the owner of the present
    /// [scope](Owner::scope), else a fresh one.
    pub fn owner(self, owner: &Owner) -> Self {
        self.set(|how| how.owner = Some(owner.clone()))
    }

    /// Acquires the lock if it is free; `None` means that another task or process holds it or waits
    /// for it.
    ///
    /// # Errors
    ///
    /// As awaiting the acquire, except that there is no `Timeout`, and no outage patience. If the
    /// lease in the way may be kept idle, the call waits up to 50 ms for its process to give it up.
    /// A command that failed or was not answered within its command timeout is
    /// [`AcquireError::Unavailable`], and its effect is withdrawn.
    ///
    /// # Cancel safety
    ///
    /// As awaiting the acquire.
    pub async fn try_acquire(self) -> Result<Option<G>, AcquireError> {
        match self.set(|how| how.limit = WaitLimit::Try).await {
            Ok(guard) => Ok(Some(guard)),
            Err(AcquireError::Timeout(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Acquires the lock, runs a closure's future under it, and releases it.
    ///
    /// Before every poll of the future the clock is checked; when the lease is lost the future is
    /// dropped where it stands. A panic of the future releases the lock and goes on.
    ///
    /// Work that ended while its lease was believed is finished: its value is returned, however its
    /// release goes. This waits for the release as [`Guard::release`] does, for one command timeout
    /// at most. Whether the lease was still there on the server is for the fence check of the
    /// storage to say.
    ///
    /// # Errors
    ///
    /// - [`WithError::Acquire`] when the lock was not acquired; the closure was not called.
    /// - [`WithError::Lost`] when the lease was lost before the future ended with a value.
    /// - [`WithError::Body`] with the closure's own error, however the release went.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and leaves the release to the runtime.
    pub async fn with<T, E, F>(self, body: impl FnOnce(G::Lease) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let guard = self.await?;
        let lease = &guard.guard().lease;
        let ended = run_while_held(lease.until_lost(), || lease.loss(), body(guard.view())).await;
        let ended = ended.map_err(WithError::Lost)?;
        // What was done under the lease is done, whatever the server says.
        let _: Result<_, ReleaseError> = guard.into_guard().release().await;
        ended.map_err(WithError::Body)
    }

    /// As [`with`](Self::with), for a closure that cannot fail: what its future returns is the value.
    ///
    /// # Errors
    ///
    /// As [`with`](Self::with), without `Body`.
    ///
    /// # Cancel safety
    ///
    /// As [`with`](Self::with).
    pub async fn with_ok<T, F>(
        self,
        body: impl FnOnce(G::Lease) -> F,
    ) -> Result<T, WithError<Infallible>>
    where
        F: Future<Output = T>,
    {
        self.with(async |lease| Ok(body(lease).await)).await
    }
}

/// What only the lease of a writer can have: that of readers is shared.
impl Acquire {
    /// Sets how long the lease lives without renewal, 100 ms to 24 h, on a quorum up to its longest ttl.
    /// Default: the runtime's.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.set(|how| how.ttl = Some(ttl))
    }

    /// Sets which acknowledgements the grant and each renewal need. Default: the runtime's.
    ///
    /// If fewer acknowledge in time, what was granted is taken back. A try fails at once; otherwise
    /// the call asks again until its wait is over, and then fails as
    /// [`Unavailable`](AcquireError::Unavailable). A renewal without them extends nothing, and is
    /// repeated until the lease ends. Acquires that ask for different acknowledgements do not share
    /// a turn, and stand in one line: one that needs none waits for those of its process before it.
    /// A re-entry has those of the lease that it enters. On a store without replicas, such as an
    /// embedded one, every acquire that asks for them fails.
    pub fn replication(self, replication: Replication) -> Self {
        self.set(|how| how.replication = Some(replication))
    }

    /// Sets whether the watchdog renews the lease; `false` makes it end after one ttl. Default: `true`.
    pub fn renew(self, renews: bool) -> Self {
        self.set(|how| how.renews = renews)
    }

    /// Ends the lease as `Lost(MaxHold)` after this time, released or not. Default: no limit.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.set(|how| how.max_hold = Some(max_hold))
    }

    /// Keeps the lock closed until this long after the acquire, also when its lease ends before; up
    /// to 24 h, on a quorum up to its longest ttl. Default: zero.
    ///
    /// For jobs that are started by clocks that differ: an instance that is late finds the lock
    /// closed, however fast the job was. The lease ends with its release, drop, `max_hold` or
    /// shutdown as ever, and the lock stays closed for the rest, which may be longer than the ttl;
    /// those who wait keep their places. A re-entry that asks for a later end prolongs it, none
    /// shortens it. A holder that crashes, or ends before the server has the release, keeps the
    /// lock closed for its ttl, and a force-release opens it at once.
    pub fn min_hold(self, hold: Duration) -> Self {
        self.set(|how| how.min_hold = Some(hold))
    }
}

impl<G: AcquiredGuard> Future for Acquire<G> {
    type Output = Result<G, AcquireError>;

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

impl<G> fmt::Debug for Acquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("how", &self.how).finish_non_exhaustive()
    }
}

impl How {
    /// As the lock and its runtime have it by default.
    pub(crate) fn of(lock: ReentrantLock) -> Self {
        let Timing { wait, outage_patience, blocked_after, .. } = lock.engine.timing;
        Self {
            lock,
            mode: Mode::Write,
            limit: WaitLimit::For(wait),
            outage_patience,
            blocked_after,
            ttl: None,
            replication: None,
            max_hold: None,
            min_hold: None,
            label: None,
            renews: true,
            owner: None,
        }
    }

    /// Acquires the lock, or gives up.
    pub(crate) async fn run<G: AcquiredGuard>(self) -> Result<G, AcquireError> {
        let mut call = self.begin()?;
        let guard = call.run().await?;
        Ok(G::of(guard, call.by.as_ref()))
    }

    fn begin(self) -> Result<AcquireCall, AcquireError> {
        let runtime = self.lock.engine.runtime_id();
        if self.owner.as_ref().is_some_and(|owner| !owner.belongs_to(runtime)) {
            return Err(AcquireError::ForeignOwner { lock: self.lock.name });
        }
        let terms = match self.checked_terms() {
            Ok(terms) => terms,
            Err(option) => return Err(AcquireError::Options { lock: self.lock.name, option }),
        };
        let Self { lock, limit, outage_patience, blocked_after, .. } = self;
        let Self { max_hold, min_hold, label, renews, .. } = self;
        let ReentrantLock { engine, name, metrics, keep_idle, .. } = lock;
        let (owner, comes_from) = match (self.owner, Owner::of_scope(runtime)) {
            (Some(owner), _) => (Some(owner), Owned::Given),
            (None, Some(owner)) => (Some(owner), Owned::Scoped),
            (None, None) => (None, Owned::Fresh),
        };
        let by: Option<Owner> = owner;
        // Who writes already may read beside it.
        let only_reads = |owner: &Owner| owner.reads(&name) && owner.held(&name).is_none();
        if terms.mode == Mode::Write && by.as_ref().is_some_and(only_reads) {
            return Err(AcquireError::WouldDeadlock { lock: name });
        }
        let owner = match terms.mode {
            Mode::Write => by.clone(),
            // Nothing of a fork is touched.
            Mode::Read if engine.is_forked() => None,
            Mode::Read => Some(engine.readers.lock().of(&name, runtime)),
        };
        Ok(AcquireCall {
            started: engine.clock.now(),
            engine,
            name,
            metrics,
            terms,
            limit,
            tries: matches!(limit, WaitLimit::Try | WaitLimit::For(Duration::ZERO)),
            outage_patience,
            blocked_after,
            renews,
            max_hold,
            min_hold,
            keep_idle,
            label,
            owner,
            by,
            caller: Caller::here(comes_from),
            recall_ends: None,
        })
    }

    fn checked_terms(&self) -> Result<Terms, OptionsError> {
        if let Some(error) = &self.lock.bad_class {
            return Err(OptionsError::Class((**error).clone()));
        }
        let wait = match self.limit {
            WaitLimit::For(wait) => wait,
            WaitLimit::Try | WaitLimit::Forever => Duration::ZERO,
        };
        let Self { outage_patience, blocked_after, ref lock, .. } = *self;
        let ReentrantLock { engine, keep_idle, .. } = lock;
        let timing =
            Timing { wait, outage_patience, blocked_after, keep_idle: *keep_idle, ..engine.timing };
        let ttl = self.ttl.map_or(Ok(timing.ttl), Ttl::new)?;
        let acks = self.replication.unwrap_or(timing.validated()?.acks);
        if self.max_hold == Some(Duration::ZERO) {
            return Err(OptionsError::MaxHold);
        }
        let longest = engine.store.longest_ttl();
        OptionsError::check_kept("a ttl", ttl.get(), longest)?;
        if let Some(hold) = self.min_hold {
            check_min_hold(hold, longest)?;
        }
        Ok(Terms { ttl, acks, mode: self.mode })
    }
}

/// Whether a store keeps a lock closed for so long.
pub(crate) fn check_min_hold(hold: Duration, longest: Duration) -> Result<(), OptionsError> {
    if hold > Ttl::MAX {
        return Err(OptionsError::MinHold);
    }
    OptionsError::check_kept("a min_hold", hold, longest)
}
