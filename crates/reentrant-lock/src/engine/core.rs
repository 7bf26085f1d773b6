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
    AtHome, Class, Clock, Entropy, Instant, LockName, LockStore, Mutex, RuntimeId, RuntimeLabel,
    StoreError, Ttl,
    metric::{ClassMetrics, Metrics},
    outage::{OutageWatch, WatchedStore},
};
use leasehold_watchdog::{Watchdog, Watches};
use tokio::sync::watch;

use crate::{
    owner::{Owner, Readers},
    queue::Numbers,
    reports::Reports,
    seam::Rules,
    timing::Timing,
};

use super::{
    executor::Executor, kept::release_idle, names::NameTable, outbox::Outbox,
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
/// An event is applied to the state of a name under the mutex of its shard. Under it, only mutexes are taken
/// whose code never calls the engine; what follows from the event is done afterwards. Methods stand in three
/// files: what all need here, how events reach the states of names in `events.rs`, and what users of a runtime
/// ask for in `operations.rs`.
///
/// In a fork of its process every call fails, and nothing of it is changed, sent or waited for.
pub struct Engine {
    pub(crate) store: Arc<WatchedStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) label: RuntimeLabel,
    pub(crate) timing: Timing,
    pub(crate) numbers: Numbers,
    pub(crate) rules: Rules,
    pub(super) names: NameTable,
    pub(super) outbox: Outbox,
    pub(crate) watermarks: Watermarks,
    pub(crate) readers: Mutex<Readers>,
    pub(crate) reports: Mutex<Reports>,
    pub(crate) ending: ShutdownState,
    pub(super) me: Weak<Self>,
    pub(super) listening: OnceLock<()>,
    // Dropping it ends the watchdog.
    pub(super) _watchdog: Watchdog,
    pub(super) executor: Executor,
}

impl Engine {
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

    /// Resolves in a fork, to the error of all calls there.
    pub(crate) async fn until_forked(&self) -> StoreError {
        // By hand: it wakes nobody, and looks whenever its task is polled.
        poll_fn(|_| self.check_process().map_or_else(Poll::Ready, |()| Poll::Pending)).await
    }

    /// A new owner, who may re-enter what it holds.
    pub fn owner(&self) -> Owner {
        Owner::new(self.runtime_id())
    }

    /// Runs work in the background that a fork of this process leaves alone.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let work = AtHome::new(self.outages().origin(), &self.clock, Box::pin(work));
        drop(self.executor.handle().spawn(work));
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
        let (mut names, mut waiting) = (0, 0);
        self.names.each(|_, _, state| {
            names += 1;
            waiting += state.waiting();
        });
        Footprint {
            watched: self.watches.watched(),
            names,
            waiting,
            pending: self.outbox.len(),
            watermarks: self.watermarks.len(),
        }
    }

    /// Subscribes to the messages of the store, from the first call on.
    pub(crate) fn listen(&self) {
        self.listening.get_or_init(|| self.store.listen(self.runtime_id(), self.me.clone()));
    }

    /// Whether the watchdog has stopped, or no name is taken any more: in a drain, a shutdown, and once the
    /// heartbeats have ended.
    pub(crate) fn has_stopped(&self) -> bool {
        self.watches.have_stopped() || self.names.is_closed()
    }

    pub(crate) fn outages(&self) -> &OutageWatch {
        self.watches.outages()
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
            let told = Arc::clone(&self.ending.told);
            mem::forget((
                Arc::clone(&self.store),
                Arc::clone(&self.clock),
                self.executor.clone(),
                told,
            ));
            self.outbox.forget();
            return;
        }
        // The watchdog ends with its handle.
        self.names.agenda.changed.notify_one();
        let idle = self.names.take_idle();
        if !idle.is_empty() {
            let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
            let (timeout, executor) = (self.timing.command_timeout, self.executor.clone());
            self.spawn(release_idle(idle, store, clock, timeout, executor));
        }
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

/// How much a runtime keeps in memory; each number shrinks when names are no longer used.
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

/// What a shutdown or a drain could do in its time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "leases that were not released stay closed until their ttl ends"]
pub struct ShutdownReport {
    /// How many leases were held when the shutdown began, or when the time of the drain was over;
    /// their holders saw them as lost.
    pub held: usize,
    /// The locks of leases that ended, and whose release the server has not confirmed in time, in
    /// order; free when their ttl ends. Acquires that failed or were given up are not listed: a
    /// place or grant that one of them may have left expires by itself.
    pub unreleased: Vec<LockName>,
}

/// How far the end of a runtime has come.
#[derive(Debug, Default)]
pub(crate) struct ShutdownState {
    refuses: AtomicBool,
    drains: AtomicBool,
    /// Whether the end has begun, for those who wait for it.
    told: Arc<watch::Sender<bool>>,
    /// Of a drain, once it is over.
    pub(super) report: OnceLock<watch::Receiver<Option<ShutdownReport>>>,
}

impl ShutdownState {
    /// From now on no call gets a new lease.
    pub(super) fn refuse(&self) {
        self.refuses.store(true, Ordering::SeqCst);
    }

    /// From now on calls are refused as those of a runtime that drains.
    pub(super) fn begin_drain(&self) {
        self.drains.store(true, Ordering::SeqCst);
    }

    /// Wakes those who wait for the end to begin.
    pub(super) fn tell(&self) {
        self.told.send_replace(true);
    }

    /// Resolves when the end begins, or when nobody is left who could begin it.
    pub(super) fn begun(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut told = self.told.subscribe();
        async move { drop(told.wait_for(|told| *told).await) }
    }

    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Ordering::SeqCst)
    }

    /// Whether a drain has begun, and its report is not there yet.
    pub(crate) fn is_draining(&self) -> bool {
        let is_over = || self.report.get().is_some_and(|report| report.borrow().is_some());
        self.drains.load(Ordering::SeqCst) && !is_over()
    }
}
