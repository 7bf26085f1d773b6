use std::{
    future::{Future, ready},
    pin::pin,
    sync::{Arc, OnceLock, Weak, mpsc::channel},
    time::Duration,
};

use futures_util::future::Either;
use leasehold_core::{
    AcquisitionId, AtHome, Fence, Instant, LockName, Mutex, NamePattern, StoreError,
    lease::{LeaseState, LossReason},
    metric::{Metrics, ReleaseVia},
    outage::{OutageWatch, WatchedStore},
    runs,
    store::{ForceRelease, ForceReleaseAnswer, Inspect, Inspection, only},
    within,
};
use leasehold_watchdog::{Watchdog, Watches};
use tokio::{select, sync::watch};

use crate::{
    durations::MOMENT,
    graph::{WaitGraph, certain_cycles},
    listing::LockList,
    queue::{NameState, Numbers, TurnId},
};

use super::{
    core::{Engine, EngineParts, ShutdownReport, ShutdownState},
    health::Health,
    heartbeats::HeartbeatTask,
    listener::Keeper,
    names::NameTable,
    outbox::{Outbox, warn_of},
    watermarks::Watermarks,
};

/// What users of a runtime ask for.
impl Engine {
    /// Starts the background tasks.
    pub fn start(parts: EngineParts) -> Arc<Self> {
        let EngineParts { store, clock, entropy, executor, runtime_id, label, timing, rules } =
            parts;
        let (metrics, secret, origin) =
            (Arc::new(Metrics::default()), entropy.secret(), (rules.origin)());
        let outages = Arc::new(OutageWatch::new(Arc::clone(&clock), origin));
        // Every command of this runtime passes here.
        let home = executor.handle().clone();
        let store =
            Arc::new(WatchedStore::new(store, Arc::clone(&outages), Arc::clone(&metrics), home));
        let watches = Watches::new(outages, Arc::clone(&entropy), rules.renews);
        let engine = Arc::new_cyclic(|me: &Weak<Self>| Self {
            _watchdog: Watchdog::start(
                executor.handle(),
                watches.clone(),
                Arc::clone(&store),
                Arc::new(Keeper(Weak::clone(me))),
                Arc::clone(&metrics),
            ),
            names: NameTable::new(origin, &clock),
            store,
            clock,
            entropy,
            metrics,
            watches,
            outbox: Outbox::default(),
            watermarks: Watermarks::default(),
            label,
            timing,
            numbers: Numbers::new(runtime_id, secret),
            rules,
            readers: Mutex::default(),
            reports: Mutex::default(),
            ending: ShutdownState::default(),
            me: Weak::clone(me),
            listening: OnceLock::new(),
            executor,
        });
        HeartbeatTask::start(&engine);
        engine
    }

    /// Tells who holds a lock, and who waits for it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn inspect(&self, name: &LockName) -> Result<Inspection, StoreError> {
        let now = self.clock.now();
        let mut seen = self.inspect_until(name, now, now + self.timing.command_timeout).await?;
        self.note_idle(name, &mut seen);
        Ok(seen)
    }

    /// As [`inspect`](Self::inspect), of many locks at once.
    pub(crate) async fn inspect_all(
        &self,
        names: Vec<LockName>,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        self.check_process()?;
        let now = self.clock.now();
        let deadline = now + self.timing.command_timeout;
        let looks = Inspect { names: names.clone() };
        let mut seen = self.store.ask(now, looks, deadline).await?;
        for (name, seen) in names.iter().zip(&mut seen) {
            if let Ok(seen) = seen {
                self.note_idle(name, seen);
            }
        }
        Ok(seen)
    }

    /// Only the runtime that keeps a lock knows whether it is idle.
    fn note_idle(&self, name: &LockName, seen: &mut Inspection) {
        if let Inspection::Held(record) = seen {
            let idle = self.look(name, record.mode, NameState::idle_turn).flatten();
            record.idle = idle == Some(TurnId { id: record.id, first: record.fence });
        }
    }

    pub(crate) async fn inspect_until(
        &self,
        name: &LockName,
        now: Instant,
        deadline: Instant,
    ) -> Result<Inspection, StoreError> {
        self.check_process()?;
        let look = Inspect { names: vec![name.clone()] };
        self.store.ask(now, look, deadline).await.and_then(only)
    }

    /// Who holds which locks, who waits for them, and the cycles among them.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn wait_graph(self: &Arc<Self>) -> WaitGraph {
        let mut list = LockList::new(Arc::clone(self), NamePattern::default());
        let (mut locks, mut unread) = (Vec::new(), Vec::new());
        while let Some(item) = list.next().await {
            match item {
                Ok(lock) => locks.push(lock),
                Err(error) => unread.push(error),
            }
        }
        let cycles = if self.is_forked() { Vec::new() } else { certain_cycles(self) };
        WaitGraph { cycles, unread, ..WaitGraph::of(&locks) }
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
    pub async fn force_release(
        &self,
        name: &LockName,
        id: AcquisitionId,
        fence: Fence,
    ) -> Result<ForceReleaseAnswer, StoreError> {
        self.check_process()?;
        let now = self.clock.now();
        let deadline = now + self.timing.command_timeout;
        let command = ForceRelease { name: name.clone(), id, fence };
        tracing::warn!(lock = %name, lease = %id, %fence, "force-releasing a lease");
        let answer = self.store.ask(now, command, deadline).await?;
        if matches!(answer, ForceReleaseAnswer::Ended { .. }) && id.runtime() == self.runtime_id() {
            self.on_force_released(name, id, fence);
        }
        Ok(answer)
    }

    /// Refuses further acquires, ends every held lease, and waits for the server to confirm.
    ///
    /// Takes at most `time`. For withdrawals, which an outage may hold up for long, it waits at
    /// most one command timeout. `LockRuntime::shutdown` says more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the shutdown under way.
    pub async fn shutdown(&self, time: Duration) -> ShutdownReport {
        if self.is_forked() {
            return ShutdownReport { held: 0, unreleased: Vec::new() };
        }
        let now = self.clock.now();
        let (soon, deadline) = (now + self.timing.command_timeout, now + time);
        self.refuse();
        let mut held = 0;
        for lease in self.watches.leases() {
            if !lease.is_held()
                || lease.lose(LossReason::Shutdown) != LeaseState::Lost(LossReason::Shutdown)
            {
                continue;
            }
            held += 1;
            self.release_lost(&lease, ReleaseVia::Shutdown);
            self.on_lost(lease.turn(), LossReason::Shutdown, lease.closed_until());
        }
        // Once more under the mutex of every shard: a lease that was just being given back was not held above,
        // and its release is in the outbox before that mutex is let go.
        self.close();
        let unreleased = self.outbox.drain(&*self.clock, soon, deadline).await;
        if held > 0 {
            tracing::info!(leases = held, "leases that were still held were ended by the shutdown");
        }
        ShutdownReport { held, unreleased }
    }

    /// Gives no new leases: calls that wait end, and an acquire on its way gets nothing.
    fn refuse(&self) {
        self.ending.refuse();
        self.outbox.remember_failures();
        self.close();
        self.ending.tell();
    }

    /// How the runtime is, from what it knows. From the first call on, the server is asked every two
    /// seconds whether it is there, unless something is heard of it anyway.
    pub fn health(&self) -> Health {
        let now = self.clock.now();
        if !self.is_here(now) {
            let error = Some(self.outages().origin().error());
            return Health {
                answering_for: None,
                silent_for: None,
                error,
                leases_at_risk: 0,
                draining: true,
            };
        }
        self.watches.look_at_server();
        let state = self.outages().state();
        let since = |at| now.saturating_since(at);
        let silent_for = state.shown_silence(now).map(since);
        let outage = state.outage().filter(|_| silent_for.is_some());
        let error = outage.map(|outage| &outage.last_error).or_else(|| state.refusal()).cloned();
        let stands_still = state.stands_still_since(now).map(|_| StoreError::still());
        Health {
            answering_for: state.answering_since(now).map(since),
            silent_for,
            error: stands_still.or(error),
            leases_at_risk: if silent_for.is_some() { self.watches.held() } else { 0 },
            draining: self.ending.refuses() || self.has_stopped(),
        }
    }

    /// The store has answered already, while it was made.
    pub fn connected(&self) {
        self.outages().connected();
    }

    /// Resolves when a drain or a shutdown has begun. `LockRuntime::draining` says more.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + Unpin + use<> {
        if self.is_forked() {
            return Either::Left(ready(()));
        }
        let begun = Box::pin(self.ending.begun());
        Either::Right(AtHome::new(self.outages().origin(), &self.clock, begun))
    }

    /// Refuses new leases, lets guards end for at most `time`, then shuts down.
    /// `LockRuntime::drain` says more.
    ///
    /// The server has until `time` is over to confirm releases, and one command timeout in any
    /// case.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the drain under way.
    pub async fn drain(self: &Arc<Self>, time: Duration) -> ShutdownReport {
        if self.is_forked() {
            return ShutdownReport { held: 0, unreleased: Vec::new() };
        }
        let mut begun = None;
        let report = self.ending.report.get_or_init(|| {
            let (sender, report) = watch::channel(None);
            begun = Some(sender);
            report
        });
        // Outside of the cell: those who are woken may drain, too.
        if let Some(sender) = begun {
            self.begin_drain(time, sender);
        }
        let mut report = report.clone();
        let mut drained = pin!(report.wait_for(Option::is_some));
        let drained = loop {
            let until = self.clock.now() + time + self.timing.command_timeout;
            if let Some(drained) = within(&*self.clock, until, drained.as_mut()).await {
                break drained.ok().and_then(|report| report.clone());
            }
            // The task of the drain may wait for longer, but not if nothing drives it.
            if !runs(self.executor.handle(), &*self.clock).await {
                break None;
            }
        };
        match drained {
            Some(report) => report,
            // The tokio runtime that the drain lived on has stopped, or stands still.
            None => self.shutdown(Duration::ZERO).await,
        }
    }

    // ADR 0016
    fn begin_drain(
        self: &Arc<Self>,
        time: Duration,
        sender: watch::Sender<Option<ShutdownReport>>,
    ) {
        let until = self.clock.now() + time;
        // Set before calls are refused, so that their error says that the runtime drains.
        self.ending.begin_drain();
        self.refuse();
        let engine = Arc::clone(self);
        // A task of its own: the drain goes on when its caller's future is dropped.
        self.spawn(async move {
            select! {
                biased;
                () = engine.until_given_back() => {}
                () = engine.clock.sleep_until(until) => {}
            }
            let rest = until.saturating_since(engine.clock.now());
            let rest = rest.max(engine.timing.command_timeout);
            sender.send_replace(Some(engine.shutdown(rest).await));
        });
    }

    async fn until_given_back(&self) {
        loop {
            let mut leases = self.watches.leases();
            leases.retain(|lease| lease.is_held());
            if leases.is_empty() {
                return;
            }
            // One after the other: each that is awaited has a timer.
            for lease in leases {
                let _ = lease.lost().await;
            }
        }
    }

    /// Nobody uses the runtime any more, and its process may be about to end: waits for the releases
    /// that a thread of its own is sending, for 50 ms at most, and warns of the others.
    ///
    /// It blocks its thread. Without a thread of its own it does nothing: the caller may be
    /// the one that would have to send.
    pub fn farewell(&self) {
        let Some(engine) = self.me.upgrade() else { return };
        // After a shutdown, its report has named them.
        let is_over = self.is_forked() || self.ending.refuses();
        if is_over || !self.executor.is_own_thread() || self.outbox.being_released().is_empty() {
            return;
        }
        let (done, flushed) = channel::<()>();
        self.spawn(async move {
            let until = engine.clock.now() + MOMENT;
            drop(engine.outbox.drain(&*engine.clock, until, until).await);
            drop(done);
        });
        // Ends when the sender is dropped. The thread may be blocked, and the clock a test's.
        let _ended = flushed.recv_timeout(MOMENT);
        warn_of(&self.outbox.being_released());
    }
}
