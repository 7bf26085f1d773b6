use std::{
    collections::BTreeMap,
    future::{Future, ready},
    mem,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{Notify, futures::Notified},
};

use super::{
    log::{Failures, OutageLog, Subject, tenths},
    state::OutageState,
};
use crate::{
    clock::{Clock, Instant, runs},
    lease::{Expiry, LossReason},
    metric::Metrics,
    mutex::Mutex,
    process::Origin,
    store::{
        Command, Inspect, Listener, LockStore, Reply, Request, StoreError, StoreFuture, of_its_kind,
    },
    types::{AcquisitionId, Fence, LockName, RuntimeId},
};

/// What the names begin with that are inspected to find out whether the server answers.
const PROBE: &str = "leasehold:probe/";
/// So many names lead to most masters of a Cluster.
const PROBES: usize = 16;

/// What one runtime knows about outages of its server, fed with every command that it sends.
#[derive(Debug)]
pub struct OutageWatch {
    clock: Arc<dyn Clock>,
    origin: Origin,
    // Nothing is logged under this lock: a subscriber may be slow.
    known: Mutex<(OutageState, OutageLog)>,
    /// Notified when an outage ends.
    ended: Notify,
}

impl OutageWatch {
    /// Nothing was sent yet by the runtime of a process.
    pub fn new(clock: Arc<dyn Clock>, origin: Origin) -> Self {
        Self { clock, origin, known: Mutex::default(), ended: Notify::new() }
    }

    /// The process of the runtime.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The clock of the runtime.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Whether the server answers, as far as it is known at this moment.
    pub fn state(&self) -> OutageState {
        self.known.lock().0.clone()
    }

    /// The server has answered already, before the first command of the runtime.
    pub fn connected(&self) {
        self.known.lock().0.connected(self.clock.now());
    }

    /// From now on the server is asked how it is when nothing is heard of it. Returns whether that is news.
    pub fn begin_looks(&self) -> bool {
        self.known.lock().0.begin_looks(self.clock.now())
    }

    /// The server is asked at `now` how it is.
    pub fn looked(&self, now: Instant) {
        self.known.lock().0.looked(now);
    }

    /// Resolves when an outage ends, also one that ends before the future is polled.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost but the news.
    pub fn ended(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// A lease was lost at `now`, after it had been held for some time; `expiry` as in
    /// [`LossReason::told`].
    pub fn lost(
        &self,
        now: Instant,
        lock: &LockName,
        (lease, fence): (AcquisitionId, Fence),
        held_for: Duration,
        (reason, expiry): (LossReason, Option<Expiry>),
    ) {
        if reason == LossReason::Shutdown || expiry == Some(Expiry::AsPlanned) {
            // Its own process asked for it.
            tracing::debug!(%lock, %lease, %fence, "lease ended: {}", reason.told(expiry));
        } else if self.known.lock().1.lost(now) {
            let (held_for, why) = (tenths(held_for), reason.told(expiry));
            tracing::warn!(%lock, %lease, %fence, ?held_for, "lease lost: {why}");
        } else {
            tracing::debug!(%lock, %lease, %fence, "lease lost: {reason}");
        }
    }

    /// A grant showed at `now` that the fence counter of a lock was behind a fence that this process had seen.
    pub fn regressed(&self, now: Instant, lock: &LockName, fence: Fence) {
        if self.known.lock().1.regressions.admits(now) {
            tracing::error!(
                %lock, %fence,
                "the server's fence counter was behind what this process had seen: the server lost data, \
                 or another one is at its address; the new fence is above both"
            );
        }
    }

    /// Logs what has happened since the last call, with how many leases are lost if they are not renewed,
    /// and how many acquires wait. Call it every few seconds, and at the end.
    pub fn tick(&self, now: Instant, leases_at_risk: usize, acquires_waiting: usize) {
        let (unreachable_for, (failing, over), lost, regressed) = {
            let (state, log) = &mut *self.known.lock();
            let unreachable_for = state.outage().map(|outage| now.saturating_since(outage.since));
            let (lost, regressed) = (log.losses.take_others(), log.regressions.take_others());
            (unreachable_for, log.tick(now), lost, regressed)
        };
        if let Some(failures) = failing {
            failures.log(unreachable_for, leases_at_risk, acquires_waiting);
        }
        if let Some(failures) = over {
            failures.log_end();
        }
        if lost > 0 {
            tracing::warn!(leases = lost, "more leases lost");
        }
        if regressed > 0 {
            tracing::error!(
                locks = regressed,
                "more fence counters were behind what this process had seen"
            );
        }
    }

    /// A command of `sent_at` succeeded.
    fn answered(&self, sent_at: Instant) {
        let now = self.clock.now();
        let over = {
            let (state, log) = &mut *self.known.lock();
            log.succeeded = true;
            self.reached(state, log, sent_at, now)
        };
        over.iter().for_each(Failures::log_end);
    }

    /// A command of `sent_at` failed.
    fn failed(&self, subject: &Subject, sent_at: Instant, error: &StoreError) {
        let now = self.clock.now();
        let (over, is_news) = {
            let (state, log) = &mut *self.known.lock();
            let over = if error.is_sign_of_life() {
                let over = self.reached(state, log, sent_at, now);
                state.refused(error);
                over
            } else {
                state.unanswered(sent_at, error.clone());
                None
            };
            (over, log.failed(now, sent_at, subject, error))
        };
        over.iter().for_each(Failures::log_end);
        subject.log_failure(error, is_news);
    }

    /// The server has answered a command of `sent_at` at `now`; yields what the log is to tell the end of.
    fn reached(
        &self,
        state: &mut OutageState,
        log: &mut OutageLog,
        sent_at: Instant,
        now: Instant,
    ) -> Option<Failures> {
        let since = state.answered(sent_at, now)?;
        self.ended.notify_waiters();
        log.reached(now, since)
    }
}

/// A store whose commands, replies and failures are reported to an [`OutageWatch`]; failures are counted.
///
/// In a fork of its process no command is sent, and each fails: two processes would have the same
/// ids. All commands of a runtime pass here. Each takes the time at which it is sent, and is on its way
/// when it is made.
#[derive(Debug)]
pub struct WatchedStore {
    store: Arc<dyn LockStore>,
    watch: Arc<OutageWatch>,
    metrics: Arc<Metrics>,
    /// The tokio runtime that connections live on.
    home: Handle,
    /// When each part of the store was probed last.
    probed_at: Mutex<BTreeMap<usize, Instant>>,
}

/// A command on its way. Dropped before its reply, it counts as given up.
struct InFlight<'a>(&'a OutageWatch);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Self(OutageWatch { clock, origin, known, .. }) = self;
        let now = clock.now();
        if origin.is_here(now) {
            known.lock().0.given_up(now);
        }
    }
}

impl WatchedStore {
    /// Tells `watch` of what happens on `store`, whose connections live on the tokio runtime `home`.
    pub fn new(
        store: Arc<dyn LockStore>,
        watch: Arc<OutageWatch>,
        metrics: Arc<Metrics>,
        home: Handle,
    ) -> Self {
        Self { store, watch, metrics, home, probed_at: Mutex::default() }
    }

    /// Sends a command at `now`, as [`send`](LockStore::send) does.
    ///
    /// # Errors
    ///
    /// As [`send`](LockStore::send), and of kind `Config` in a fork.
    ///
    /// # Cancel safety
    ///
    /// As [`send`](LockStore::send).
    pub fn ask<R: Request>(
        &self,
        now: Instant,
        request: R,
        deadline: Instant,
    ) -> impl Future<Output = Result<R::Reply, StoreError>> + Send + use<'_, R> {
        let command = request.into();
        let subject = Subject::of(&command);
        self.ask_about::<R>(subject, now, command, deadline)
    }

    /// Asks whether the part of the store answers in which a lock lives; all calls share one probe. `None`
    /// if a probe was sent whose answer may still be awaited.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the probe: give it to a task that outlives the caller.
    pub fn probe(
        self: &Arc<Self>,
        now: Instant,
        name: &LockName,
        deadline: Instant,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let allowance = self.watch.state().allowance();
        let part = self.shard(name);
        let mut probed_at = self.probed_at.lock();
        // A Cluster gets new parts again and again.
        probed_at.retain(|_, at| now < *at + allowance);
        if probed_at.contains_key(&part) {
            return None;
        }
        probed_at.insert(part, now);
        drop(probed_at);
        let (store, look) = (Arc::clone(self), Inspect { names: vec![name.clone()] });
        Some(async move { store.look(now, look, deadline).await })
    }

    /// Asks the server whether it answers; on a Cluster, as many masters as a few names lead to.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the question.
    pub async fn probe_all(&self, now: Instant, deadline: Instant) {
        let names = (0..PROBES).filter_map(|number| LockName::new(format!("{PROBE}{number}")).ok());
        let parts: BTreeMap<_, _> = names.map(|name| (self.shard(&name), name)).collect();
        self.look(now, Inspect { names: parts.into_values().collect() }, deadline).await;
    }

    /// Looks only to find out whether there is an answer, which the wrapper itself notes.
    async fn look(&self, now: Instant, look: Inspect, deadline: Instant) {
        drop(self.ask_about::<Inspect>(Subject::probe(), now, look.into(), deadline).await);
    }

    fn ask_about<R: Request>(
        &self,
        subject: Subject,
        now: Instant,
        command: Command,
        deadline: Instant,
    ) -> impl Future<Output = Result<R::Reply, StoreError>> + Send + use<'_, R> {
        let watch = &*self.watch;
        let (sending, in_flight): (StoreFuture<'_, Reply>, _) = if watch.origin.is_here(now) {
            watch.known.lock().0.sent(now);
            let in_flight = InFlight(watch);
            (self.store.send(command, deadline), Some(in_flight))
        } else {
            (Box::pin(ready(Err(watch.origin.error()))), None)
        };
        async move {
            let mut reply = sending.await;
            if let Some(in_flight) = in_flight {
                if let Err(error) = reply {
                    // Boxed, as other rare paths are: otherwise every command would have room for it.
                    reply = Err(Box::pin(self.by(deadline, error)).await);
                }
                mem::forget(in_flight);
                match reply.as_ref().map_or_else(Some, Reply::failure) {
                    Some(error) => self.watch.failed(&subject, now, error),
                    None => self.watch.answered(now),
                }
                self.count(&reply);
            }
            of_its_kind(reply?)
        }
    }

    /// Counts what failed: a command, or each part of a batch.
    fn count(&self, reply: &Result<Reply, StoreError>) {
        let store = self.metrics.store();
        match reply {
            Ok(reply) => reply.failures().for_each(|error| store.error(error.kind())),
            Err(error) => store.error(error.kind()),
        }
    }

    /// The error of a command; where this process stood still, or what its connections live on, it says so.
    async fn by(&self, deadline: Instant, error: StoreError) -> StoreError {
        let clock = &*self.watch.clock;
        let error = error.by(deadline, clock.now());
        let is_known = error.is_ours() || error.is_sign_of_life();
        if is_known || !error.kind().is_transient() || runs(&self.home, clock).await {
            return error;
        }
        error.undriven()
    }

    /// Passes all pushes for a runtime to a listener; see [`listen`](LockStore::listen).
    pub fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.store.listen(runtime, listener);
    }

    /// Whether the store ends with this process; see
    /// [`ends_with_process`](LockStore::ends_with_process).
    pub fn ends_with_process(&self) -> bool {
        self.store.ends_with_process()
    }

    /// The longest ttl that the store grants; see [`longest_ttl`](LockStore::longest_ttl).
    pub fn longest_ttl(&self) -> Duration {
        self.store.longest_ttl()
    }

    /// Which part of the store a name lives in; see [`shard`](LockStore::shard).
    pub fn shard(&self, name: &LockName) -> usize {
        self.store.shard(name)
    }
}
