use std::{
    fmt,
    future::{Future, poll_fn},
    mem,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, AtHome, Class, Clock, Entropy, FenceToken, Instant, LockName, LockStore, Mutex,
    RuntimeId, RuntimeLabel, StoreError, Ttl,
    metric::{ClassMetrics, Metrics},
    outage::{OutageWatch, WatchedStore},
    store::{ForceRelease, ForceReleaseAnswer},
};
use leasehold_watchdog::{Watchdog, Watches};
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{blocked::Ration, cohort::Numbers, graph::OwnHolds, seam::Rules, timing::Timing};

use super::{
    backlog::Backlog,
    dropped::Dropped,
    executor::Executor,
    heartbeats::HeartbeatTask,
    kept::KeptTurns,
    listener::Keeper,
    pending::Pending,
    shutdown::Drain,
    table::{Agenda, Shard},
    watermarks::Watermarks,
};

/// What an [`Engine`] is made of.
#[derive(Debug)]
pub struct EngineParts {
    /// Where leases are kept.
    pub store: Arc<dyn LockStore>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where jitter and the secret of this runtime come from.
    pub entropy: Arc<dyn Entropy>,
    /// Where background tasks run.
    pub executor: Executor,
    /// Who this runtime is; never used by another.
    pub runtime_id: RuntimeId,
    /// What operators see as the holder.
    pub label: RuntimeLabel,
    /// The times that hold for all locks.
    pub timing: Timing,
    /// The decisions of its rules; the real ones, unless a test replaces one.
    #[doc(hidden)]
    pub rules: Rules,
}

/// What the locks of one runtime share; its tasks end when the last lock and guard are dropped.
///
/// An event is applied to a cohort under the lock of the name's shard, where no lock is taken that
/// calls back; what follows from it is done afterwards.
///
/// In a fork of its process every call fails, and nothing of it is changed, sent or waited for.
pub struct Engine {
    pub(crate) store: Arc<WatchedStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) pending: Pending,
    pub(super) backlog: Backlog,
    pub(crate) watermarks: Watermarks,
    pub(super) kept: KeptTurns,
    pub(crate) label: RuntimeLabel,
    pub(crate) timing: Timing,
    pub(crate) numbers: Numbers,
    pub(crate) rules: Rules,
    /// Commands that no task waits for: only so many are sent at a time.
    pub(crate) background: Semaphore,
    /// The waits that were reported.
    pub(crate) reports: Mutex<Ration>,
    /// The waits for this very process that were warned of.
    pub(crate) suspects: Mutex<Ration>,
    /// The unconfirmed runs that were warned of.
    pub(crate) unconfirmed: Mutex<Ration>,
    /// The messages that were dropped.
    pub(super) dropped: Mutex<Dropped>,
    /// The locks that owners of this runtime hold.
    pub(crate) own_holds: OwnHolds,
    pub(super) shards: Vec<Shard>,
    pub(super) agenda: Arc<Agenda>,
    pub(super) refuses: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) drain: Drain,
    pub(super) me: Weak<Self>,
    listening: OnceLock<()>,
    // Ends its task.
    _watchdog: Watchdog,
    pub(super) executor: Executor,
}

impl Engine {
    pub(super) const SHARDS: usize = 16;
    pub(super) const BACKGROUND: usize = 64;

    /// Starts the background tasks.
    pub fn start(parts: EngineParts) -> Arc<Self> {
        let EngineParts { store, clock, entropy, executor, runtime_id, label, timing, rules } =
            parts;
        let (metrics, secret) = (Arc::new(Metrics::default()), entropy.secret());
        let outages = Arc::new(OutageWatch::new(Arc::clone(&clock), (rules.origin)()));
        // Every command of this runtime passes here.
        let store = Arc::new(WatchedStore::new(store, Arc::clone(&outages)));
        let watches = Watches::new(outages, Arc::clone(&entropy), rules.renews);
        let engine = Arc::new_cyclic(|me: &Weak<Self>| Self {
            _watchdog: Watchdog::start(
                executor.handle(),
                watches.clone(),
                Arc::clone(&store),
                Arc::new(Keeper(Weak::clone(me))),
                Arc::clone(&metrics),
            ),
            store,
            clock,
            entropy,
            metrics,
            watches,
            pending: Pending::default(),
            backlog: Backlog::default(),
            watermarks: Watermarks::default(),
            kept: KeptTurns::default(),
            label,
            timing,
            numbers: Numbers::new(runtime_id, secret),
            rules,
            background: Semaphore::new(Self::BACKGROUND),
            reports: Mutex::default(),
            suspects: Mutex::default(),
            unconfirmed: Mutex::default(),
            dropped: Mutex::default(),
            own_holds: OwnHolds::default(),
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            agenda: Arc::default(),
            refuses: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            drain: Drain::default(),
            me: Weak::clone(me),
            listening: OnceLock::new(),
            executor,
        });
        HeartbeatTask::start(&engine);
        engine
    }

    /// Who this runtime is.
    pub fn runtime_id(&self) -> RuntimeId {
        self.numbers.runtime_id()
    }

    /// Whether this process is a fork of the one that made the runtime.
    pub fn is_forked(&self) -> bool {
        !self.is_here(self.clock.now())
    }

    /// Whether the runtime was made in this process; `now` was read after the last await.
    pub(crate) fn is_here(&self, now: Instant) -> bool {
        self.outages().origin().is_here(now)
    }

    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` in a fork of the process that made the runtime.
    pub(crate) fn check_process(&self) -> Result<(), StoreError> {
        if self.is_forked() { Err(self.outages().origin().error()) } else { Ok(()) }
    }

    /// Runs work in the background that a fork of this process leaves alone.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let work = AtHome::new(self.outages().origin(), &self.clock, Box::pin(work));
        drop(self.handle().spawn(work));
    }

    /// The series of a class.
    pub(crate) fn metrics_of(&self, class: &Class) -> Arc<ClassMetrics> {
        if self.is_forked() { Metrics::unknown(class) } else { self.metrics.class(class) }
    }

    /// Counts what is kept; in a fork, nothing.
    pub fn footprint(&self) -> Footprint {
        if self.is_forked() {
            return Footprint { watched: 0, names: 0, waiting: 0, pending: 0, watermarks: 0 };
        }
        let (names, waiting, _) = self.count();
        Footprint {
            watched: self.watches.watched(),
            names,
            waiting,
            pending: self.pending.len(),
            watermarks: self.watermarks.len(),
        }
    }

    /// Ends the lease that an inspection showed, and no other.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; `Indeterminate` means that the lease may have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    // ADR 0009
    pub async fn force_release(
        &self,
        name: &LockName,
        id: AcquisitionId,
        fence: FenceToken,
    ) -> Result<ForceReleaseAnswer, StoreError> {
        self.check_process()?;
        let now = self.clock.now();
        let deadline = now + self.timing.command_timeout;
        let command = ForceRelease { name: name.clone(), id, fence };
        tracing::warn!(lock = %name, lease = %id, %fence, "force-releasing a lease");
        let answer = self.counted(self.store.ask(now, command, deadline).await)?;
        if matches!(answer, ForceReleaseAnswer::Ended { .. }) && id.runtime() == self.runtime_id() {
            self.on_force_released(name, id, fence);
        }
        Ok(answer)
    }

    /// Resolves at `at`; by the clock as well, as the timers of a busy executor are late. With `lazily` something else
    /// is expected before, and a timer is set only when the task is woken without it.
    pub(crate) async fn until(&self, at: Instant, mut lazily: bool) {
        let mut timer = None;
        poll_fn(|cx| {
            if self.clock.now() >= at {
                return Poll::Ready(());
            }
            if mem::take(&mut lazily) {
                return Poll::Pending;
            }
            timer.get_or_insert_with(|| self.clock.sleep_until(at)).as_mut().poll(cx)
        })
        .await;
    }

    /// Subscribes to the messages of the store, from the first call on.
    pub(super) fn listen(&self) {
        self.listening.get_or_init(|| self.store.listen(self.runtime_id(), self.me.clone()));
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.executor.handle()
    }

    /// Whether the tasks of this runtime have ended: no lease is renewed, and no place is kept.
    pub(crate) fn has_stopped(&self) -> bool {
        self.watches.have_stopped() || self.is_closed.load(Ordering::SeqCst)
    }

    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Ordering::SeqCst)
    }

    pub(crate) fn outages(&self) -> &OutageWatch {
        self.watches.outages()
    }

    /// Passes an answer on, and counts it if it is an error.
    pub(crate) fn counted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        answer.inspect_err(|error| self.metrics.store().error(error.kind()))
    }

    /// How long a command may take that carries a place.
    pub(crate) fn place_deadline(&self, ttl: Ttl) -> Duration {
        let Self { timing, rules, .. } = self;
        (rules.place_deadline)(timing.heartbeat_time(ttl), timing.command_deadline(ttl))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.is_forked() {
            // What they have inside may wait for threads that are not there.
            mem::forget((Arc::clone(&self.store), Arc::clone(&self.clock), self.executor.clone()));
            return;
        }
        // The watchdog ends with its handle.
        self.agenda.stop();
        self.release_idle();
    }
}

/// Short on purpose: it is part of every lock's.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("runtime_id", &self.runtime_id())
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// How much a runtime keeps in memory; everything shrinks when names go idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Turns that the watchdog watches: locks that this runtime holds.
    pub watched: usize,
    /// Names that tasks of this runtime hold or wait for.
    pub names: usize,
    /// Tasks that wait for a lock.
    pub waiting: usize,
    /// Commands that the server has not confirmed yet: releases, withdrawals, counts of holds.
    pub pending: usize,
    /// Names whose last fence is remembered; idle ones are forgotten within 20 minutes of use of
    /// the runtime.
    pub watermarks: usize,
}
