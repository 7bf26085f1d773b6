use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Class, LockName, NameError, Replication, RuntimeLabel, Terms, Ttl, metric::ClassMetrics,
};

use crate::{
    engine::Engine,
    error::{AcquireError, OptionsError, ReleaseError, WithError},
    guard::Guard,
    lease::{Lease, run_while_held},
    owner::{Caller, Owned, Owner},
    timing::Timing,
    wait::{AcquireCall, WaitLimit},
};

/// A lock by name.
///
/// Cheap to make and to clone; two of the same name are the same lock.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::LockRuntime;
///
/// let locks = LockRuntime::embedded()?;
/// let lock = locks.lock("orders/42")?.class("orders"); // the class is a label of metrics
///
/// let guard = lock.acquire().await?; // waits
/// assert!(lock.try_acquire().await?.is_none()); // does not wait
/// guard.release().await?;
///
/// // A closure, whose future is dropped when the lease is lost:
/// let fence = lock.with(|lease| async move { Ok::<_, std::io::Error>(lease.fence()) }).await?;
/// # let _ = fence;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ReentrantLock {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: LockName,
    pub(crate) metrics: Arc<ClassMetrics>,
    keep_idle: Duration,
    /// Why the class cannot be one: acquires fail with it.
    bad_class: Option<Box<NameError>>,
}

impl ReentrantLock {
    /// A lock of a runtime; services ask their `LockRuntime` for one.
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, name: LockName) -> Self {
        let metrics = engine.metrics_of(&Class::default());
        let keep_idle = engine.timing.keep_idle;
        Self { engine, name, metrics, keep_idle, bad_class: None }
    }

    /// Counts the lock under a class in metrics: 1 to 64 ASCII letters, digits, `-`, `_` and
    /// `.`. Default: `default`.
    #[must_use]
    pub fn class(self, class: impl AsRef<str>) -> Self {
        match Class::new(class) {
            Ok(class) => Self { metrics: self.engine.metrics_of(&class), bad_class: None, ..self },
            Err(error) => Self { bad_class: Some(Box::new(error)), ..self },
        }
    }

    /// Lets the lock stay idle with this process for at most `time` after its last lease,
    /// while nobody else wants it. Zero for not at all. Default: the runtime's.
    ///
    /// The next acquire of this process then takes the lock without a command to the server, with
    /// the next fence. When another process queues, an idle lock is passed to it at once. A name is
    /// kept from its second use on, and not while other processes want it. If several handles of
    /// one process differ, the one that acquired last decides. At most the runtime's ttl less half
    /// a second, or less a quarter of the claim window if that is shorter; a lock that was acquired
    /// with a shorter ttl stays for less. The guide *kept turns* says when it helps, and when it
    /// harms.
    #[must_use]
    pub fn keep_idle(self, time: Duration) -> Self {
        Self { keep_idle: time, ..self }
    }

    /// Returns the lock's name.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// Makes an acquire that waits, to be configured and awaited.
    pub fn acquire(&self) -> Acquire {
        let Timing { wait, outage_patience, .. } = self.engine.timing;
        Acquire {
            lock: self.clone(),
            limit: WaitLimit::For(wait),
            outage_patience,
            ttl: None,
            replication: None,
            max_hold: None,
            min_hold: None,
            label: None,
            renews: true,
            owner: None,
        }
    }

    /// Acquires the lock if it is free; see [`Acquire::try_acquire`].
    ///
    /// # Errors
    ///
    /// As [`Acquire::try_acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`Acquire::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        self.acquire().try_acquire().await
    }

    /// Runs a closure while holding the lock; see [`Acquire::with`].
    ///
    /// # Errors
    ///
    /// As [`Acquire::with`].
    ///
    /// # Cancel safety
    ///
    /// As [`Acquire::with`].
    pub async fn with<T, E, F>(&self, body: impl FnOnce(Lease) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.acquire().with(body).await
    }
}

/// How to acquire a lock; await it to do so.
///
/// Without further calls it waits for the runtime's default time (30 s), with the runtime's
/// default ttl (30 s), renewed for as long as the guard lives, for a fresh owner. What was set here
/// and on the lock is checked when it is awaited.
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
#[derive(Debug, Clone)]
#[must_use = "an acquire does nothing unless it is awaited"]
pub struct Acquire {
    pub(crate) lock: ReentrantLock,
    pub(crate) limit: WaitLimit,
    outage_patience: Duration,
    ttl: Option<Duration>,
    replication: Option<Replication>,
    max_hold: Option<Duration>,
    min_hold: Option<Duration>,
    /// What others see as the holder; `None` for the runtime's label.
    pub(crate) label: Option<RuntimeLabel>,
    renews: bool,
    owner: Option<Owner>,
}

impl Acquire {
    /// Waits for at most this long, up to 365 days; zero tries once. Default: the runtime's.
    pub fn wait(self, wait: Duration) -> Self {
        Self { limit: WaitLimit::For(wait), ..self }
    }

    /// Waits without a limit.
    pub fn wait_forever(self) -> Self {
        Self { limit: WaitLimit::Forever, ..self }
    }

    /// Fails as [`Unavailable`](AcquireError::Unavailable) after this long without any answer of
    /// the server, at least 10 ms, and never later than the wait ends. Default: the runtime's.
    ///
    /// In an outage it counts from the beginning, also if the call comes later: once it is over, the call
    /// fails within 100 ms, or within four usual round trips if that is longer. Time that a lock is taken
    /// does not count: while the server answers, the wait goes on.
    pub fn outage_patience(self, patience: Duration) -> Self {
        Self { outage_patience: patience, ..self }
    }

    /// Sets how long the lease lives without renewal, 100 ms to 24 h. Default: the runtime's.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
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
        Self { replication: Some(replication), ..self }
    }

    /// Sets whether the watchdog renews the lease; `false` makes it end after one ttl. Default: `true`.
    pub fn renew(self, renews: bool) -> Self {
        Self { renews, ..self }
    }

    /// Ends the lease as `Lost(MaxHold)` after this time, released or not. Default: no limit.
    pub fn max_hold(self, max_hold: Duration) -> Self {
        Self { max_hold: Some(max_hold), ..self }
    }

    /// Keeps the lock closed until this long after the acquire, also when its lease ends before; up
    /// to 24 h. Default: zero.
    ///
    /// For jobs that are started by clocks that differ: an instance that is late finds the lock
    /// closed, however fast the job was. The lease ends with its release, drop, `max_hold` or
    /// shutdown as ever, and the lock stays closed for the rest, which may be longer than the ttl;
    /// those who wait keep their places. A re-entry that asks for a later end prolongs it, none
    /// shortens it. A holder that crashes, or ends before the server has the release, keeps the
    /// lock closed for its ttl, and a force-release opens it at once.
    pub fn min_hold(self, hold: Duration) -> Self {
        Self { min_hold: Some(hold), ..self }
    }

    /// Acquires for this owner, who re-enters what it holds. Default: the owner of the present
    /// [scope](Owner::scope), else a fresh one.
    pub fn owner(self, owner: &Owner) -> Self {
        Self { owner: Some(owner.clone()), ..self }
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
    pub async fn try_acquire(self) -> Result<Option<Guard>, AcquireError> {
        match (Self { limit: WaitLimit::Try, ..self }).await {
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
    pub async fn with<T, E, F>(self, body: impl FnOnce(Lease) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let guard = self.await?;
        let lease = &guard.lease;
        let ended = run_while_held(lease.until_lost(), || lease.loss(), body(lease.clone())).await;
        let ended = ended.map_err(WithError::Lost)?;
        // What was done under the lease is done, whatever the server says.
        let _: Result<_, ReleaseError> = guard.release().await;
        ended.map_err(WithError::Body)
    }

    /// Checks the options; the call begins now.
    fn begin(self) -> Result<AcquireCall, AcquireError> {
        let runtime = self.lock.engine.runtime_id();
        if self.owner.as_ref().is_some_and(|owner| !owner.belongs_to(runtime)) {
            return Err(AcquireError::ForeignOwner { lock: self.lock.name });
        }
        let terms = match self.checked_terms() {
            Ok(terms) => terms,
            Err(option) => return Err(AcquireError::Options { lock: self.lock.name, option }),
        };
        let Self { lock, limit, outage_patience, max_hold, min_hold, label, renews, .. } = self;
        let ReentrantLock { engine, name, metrics, keep_idle, .. } = lock;
        let (owner, comes_from) = match (self.owner, Owner::of_scope(runtime)) {
            (Some(owner), _) => (Some(owner), Owned::Given),
            (None, Some(owner)) => (Some(owner), Owned::Scoped),
            (None, None) => (None, Owned::Fresh),
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
            renews,
            max_hold,
            min_hold,
            keep_idle,
            label,
            owner,
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
        let (outage_patience, keep_idle) = (self.outage_patience, self.lock.keep_idle);
        let timing = Timing { wait, outage_patience, keep_idle, ..self.lock.engine.timing };
        let ttl = self.ttl.map_or(Ok(timing.ttl), Ttl::new)?;
        let acks = self.replication.unwrap_or(timing.validated()?.acks);
        if self.max_hold == Some(Duration::ZERO) {
            return Err(OptionsError::MaxHold);
        }
        if self.min_hold > Some(OptionsError::MAX_CLOSED) {
            return Err(OptionsError::MinHold);
        }
        Ok(Terms { ttl, acks })
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Guard, AcquireError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Acquires the lock, waiting for it where that is needed.
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
    /// - [`AcquireError::TooManyHolds`] when the owner re-entered it too often.
    /// - [`AcquireError::ShutDown`] when the runtime was shut down.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point takes its effect back; a waiter that comes back queues
    /// anew.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.begin()?.run().await })
    }
}
