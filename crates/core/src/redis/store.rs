use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::{FutureExt, join_all};
use redis::{Cmd, Value};
use tokio::runtime::Handle;

use super::{
    acknowledge::{Answered, acknowledged},
    batcher::Batcher,
    channel::Channel,
    command::{LockCommand, Preamble},
    config::RedisConfig,
    decode, heartbeat,
    lane::{Call, Lane, millis},
    login::Dialer,
    pool::RedisPool,
    preflight::Readiness,
    renewing::lane_that_works,
    scan, scripts,
    sharing::Sharing,
    subscriber::{Dialers, Subscriptions},
    waiting::Waiting,
};
use crate::{
    clock::{Clock, Instant},
    mutex::Mutex,
    store::{
        Acquire, AcquireAnswer, Command, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer,
        Inspect, Inspection, KeyScheme, Listener, LockStore, Release, ReleaseAnswer, RenewAnswer,
        Renewal, Renewals, Reply, StoreError, StoreErrorKind, StoreFuture, Withdraw,
        WithdrawAnswer,
    },
    types::{LockName, Replication, RuntimeId},
};

/// Leases on a Redis server, version 6.2 or newer.
///
/// One multiplexed connection, or a few, carry acquires and releases, each name always on the same
/// one. Renewals have one of their own, so that nothing queues ahead of them. Commands that wait
/// for acknowledgements have connections of their own. Inspections use a pool. One more connection
/// brings the pushes of the server.
#[derive(Debug)]
pub struct RedisStore {
    pub(super) preamble: Arc<Preamble>,
    pub(super) commands: Vec<Batcher<Preamble>>,
    pub(super) renewals: Lane,
    /// Whether the connection for renewals was asked for: the first renewal does not wait for it.
    renews: AtomicBool,
    waiting: Waiting,
    pub(super) pool: RedisPool,
    pub(super) subscriptions: Subscriptions,
    pub(super) readiness: Arc<Readiness>,
    pub(super) clock: Arc<dyn Clock>,
    /// How many locks one script looks at.
    looks: usize,
}

/// How many it may be: they share the 1,024 places that one script looks at, at least 128 for each.
const MAX_LOOKS: usize = 8;

impl RedisStore {
    /// Connects, checks the server's version, and runs every kind of command once.
    ///
    /// Connections live on `runtime`, even when another tokio runtime uses them.
    ///
    /// # Errors
    ///
    /// [`StoreError`], before any lock was touched: `Definite` when the server is out of reach,
    /// `Config` for a wrong password, missing rights, or a server that is too old.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind but, at worst, a probe key that lives a second.
    pub async fn connect(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Handle,
        runtime_id: RuntimeId,
    ) -> Result<Self, StoreError> {
        let store = Self::lazy(config, clock, runtime, runtime_id)?;
        store.readiness.now().await?;
        Ok(store)
    }

    /// Checks the settings and sends the server nothing: the first command connects, and waits
    /// until the server has been checked as [`connect`](Self::connect) does it.
    ///
    /// While the check fails, each command fails with the error of the last attempt, and has not
    /// run; later commands try again, one attempt at a time.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the settings cannot work, such as an unreadable
    /// certificate.
    pub fn lazy(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Handle,
        runtime_id: RuntimeId,
    ) -> Result<Self, StoreError> {
        let probe = probe(runtime_id)?;
        Self::checking(config, clock, runtime, runtime_id, Some(probe))
    }

    /// As [`lazy`](Self::lazy), with the lock that the check is about; without one, there is none.
    pub(super) fn checking(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Handle,
        runtime_id: RuntimeId,
        probe: Option<LockName>,
    ) -> Result<Self, StoreError> {
        let dialer = Arc::new(Dialer::new(config, Arc::clone(&clock), Some(&runtime))?);
        let lane = || Lane::new(Arc::clone(&dialer), Arc::clone(&clock), runtime.clone());
        let tag = config.node.as_ref().map(|node| Arc::clone(&node.tag));
        let preamble = Arc::new(Preamble::new(config.keys.clone(), config.fencing).at(tag));
        // On a Cluster, a call may not declare keys of several slots.
        let gathers = Arc::<AtomicBool>::default();
        let (sharing, behind_waits) = match config.node {
            None => (Sharing::All, Sharing::All),
            Some(_) => (Sharing::Quick(Arc::clone(&gathers)), Sharing::None),
        };
        let batcher = || {
            let (preamble, clock) = (Arc::clone(&preamble), Arc::clone(&clock));
            Batcher::new(lane(), preamble, clock, runtime.clone(), sharing.clone(), false)
        };
        let commands: Vec<_> = (0..config.connections).map(|_| batcher()).collect();
        let dialers = Arc::clone(&dialer) as Arc<dyn Dialers>;
        let subscriptions = Subscriptions::new(dialers, Arc::clone(&clock), runtime.clone());
        let pool = RedisPool::on(config, Arc::clone(&dialer), Some(runtime.clone()))?;
        let renewals = lane();
        let waiting = Waiting {
            dialer: Arc::clone(&dialer),
            preamble: Arc::clone(&preamble),
            clock: Arc::clone(&clock),
            runtime: runtime.clone(),
            connections: config.connections,
            sharing: behind_waits,
            by_demand: Mutex::default(),
        };
        let lane = probe.as_ref().map_or(0, |probe| lane_number(probe, commands.len()));
        let readiness = Readiness {
            dialer,
            lane: commands[lane].lane().clone(),
            preamble: Arc::clone(&preamble),
            channel: config.keys.channel(runtime_id),
            acks: config.acks,
            limit: config.connect_timeout.saturating_add(config.command_timeout),
            clock: Arc::clone(&clock),
            runtime,
            passed: probe.is_none().into(),
            probe,
            gathers: config.node.as_ref().map(|_| gathers),
            failed: Arc::default(),
        };
        Ok(Self {
            commands,
            renewals,
            renews: false.into(),
            waiting,
            pool,
            preamble,
            subscriptions,
            readiness: Arc::new(readiness),
            clock,
            looks: if config.node.is_some() { 1 } else { MAX_LOOKS },
        })
    }

    /// Makes a check of the server, even right after a failed one.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        self.readiness.now().await
    }

    /// A runtime waits at this node of a Cluster: from now on it hears what the node publishes from the node itself.
    pub(super) fn is_waited_at(
        &self,
        runtime: RuntimeId,
        listener: impl FnOnce() -> Option<Weak<dyn Listener>>,
    ) {
        self.subscriptions.listen_once(runtime, || {
            let (plain, tag) = (self.preamble.keys.channel(runtime), self.preamble.tag.clone()?);
            Some((Channel::Sharded { plain, tag }, listener()?))
        });
    }

    /// What makes its connections.
    pub(super) fn dialer(&self) -> &Arc<Dialer> {
        &self.readiness.dialer
    }

    /// The names of this store's keys.
    pub fn keys(&self) -> &KeyScheme {
        &self.preamble.keys
    }

    /// The pool that inspections use.
    pub fn pool(&self) -> &RedisPool {
        &self.pool
    }

    /// Makes the connection of renewals when the first lock is taken.
    fn prepare_renewals(&self) {
        // A swap alone would write a line that all cores share, at each acquire.
        if !self.renews.load(Ordering::Relaxed) && !self.renews.swap(true, Ordering::Relaxed) {
            self.renewals.prepare();
        }
    }
}

impl LockStore for RedisStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        // Each is boxed by itself: otherwise a release would take the room of the largest.
        match command {
            Command::Acquire(acquire) => replied(self.acquire(acquire, deadline)),
            Command::Heartbeat(heartbeats) => {
                replied(heartbeat::heartbeat(self, heartbeats, deadline).map(Ok))
            }
            Command::Hold(hold) => replied(self.hold(hold, deadline)),
            Command::Release(release) => replied(self.release(release, deadline)),
            Command::Renew(renewals) => replied(self.renew(renewals, deadline)),
            Command::Withdraw(withdraw) => replied(self.withdraw(withdraw, deadline)),
            Command::Inspect(inspect) => replied(self.look_at(inspect, deadline)),
            Command::Scan(scan) => replied(scan::scan(self, scan, deadline)),
            Command::ForceRelease(force) => replied(self.force_release(force, deadline)),
        }
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.subscriptions.listen(runtime, self.preamble.keys.channel(runtime), listener);
    }
}

/// The reply of a command.
pub(in crate::redis) fn replied<'a, T: Into<Reply>>(
    reply: impl Future<Output = Result<T, StoreError>> + Send + 'a,
) -> StoreFuture<'a, Reply> {
    Box::pin(reply.map(|reply| reply.map(Into::into)))
}

/// Each command writes its keys, then its arguments, in the order of the script's header.
impl RedisStore {
    async fn acquire(
        &self,
        command: Acquire,
        deadline: Instant,
    ) -> Result<AcquireAnswer, StoreError> {
        let (ttl, acks) = (command.ttl, command.acks);
        let decode = |Answered { answer, counted }| {
            let answer = decode::acquire(answer, ttl)?;
            if matches!(answer, AcquireAnswer::Granted(_)) {
                acknowledged(acks, counted.as_ref())?;
            }
            Ok(answer)
        };
        let answer = self.run(LockCommand::acquire(command), deadline, decode).await;
        let answer = answer.map_err(|error| error.for_ttl(ttl))?;
        if !matches!(answer, AcquireAnswer::Busy { .. }) {
            self.prepare_renewals();
        }
        Ok(answer)
    }

    async fn hold(&self, command: Hold, deadline: Instant) -> Result<HoldAnswer, StoreError> {
        let acks = command.acks;
        let decode = |Answered { answer, counted }| {
            let answer = decode::hold(answer)?;
            if matches!(answer, HoldAnswer::Held { .. }) {
                acknowledged(acks, counted.as_ref())?;
            }
            Ok(answer)
        };
        self.run(LockCommand::hold(command), deadline, decode).await
    }

    async fn release(
        &self,
        command: Release,
        deadline: Instant,
    ) -> Result<ReleaseAnswer, StoreError> {
        let command = LockCommand::release(command);
        self.run(command, deadline, |answered| decode::release(answered.answer)).await
    }

    async fn renew(
        &self,
        Renewals { batch }: Renewals,
        deadline: Instant,
    ) -> Result<Vec<Result<RenewAnswer, StoreError>>, StoreError> {
        let Some(first) = batch.first() else { return Ok(Vec::new()) };
        // As a rule all need the same.
        let mut parts = batch.chunk_by(|one, next| one.acks == next.acks);
        let renew = async |part, acks| {
            let answers = self.renew_alike(part, acks, deadline).await;
            answers.map_err(|error| error.for_ttl(first.ttl))
        };
        if let (Some(_), None) = (parts.next(), parts.next()) {
            return renew(&batch, first.acks).await;
        }
        let parts = batch.chunk_by(|one, next| one.acks == next.acks);
        let renewing = parts.map(async |part| {
            let answers = renew(part, part[0].acks).await;
            answers.unwrap_or_else(|error| vec![Err(error); part.len()])
        });
        Ok(join_all(renewing).await.into_iter().flatten().collect())
    }

    async fn withdraw(
        &self,
        command: Withdraw,
        deadline: Instant,
    ) -> Result<WithdrawAnswer, StoreError> {
        let command = LockCommand::withdraw(command);
        self.run(command, deadline, |answered| decode::withdraw(answered.answer)).await
    }

    async fn look_at(
        &self,
        Inspect { names }: Inspect,
        deadline: Instant,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        let mut seen = Vec::with_capacity(names.len());
        for part in names.chunks(self.looks) {
            let looked = self.look(part, deadline).await;
            seen.extend(looked.map_err(|error| for_only(&names, error))?);
        }
        let told =
            |(seen, name): (Result<_, StoreError>, _)| seen.map_err(|error| error.for_lock(name));
        Ok(seen.into_iter().zip(&names).map(told).collect())
    }

    async fn force_release(
        &self,
        ForceRelease { name, id, fence }: ForceRelease,
        deadline: Instant,
    ) -> Result<ForceReleaseAnswer, StoreError> {
        let write = |to: &mut Cmd| {
            self.preamble.write_keys(to, &name);
            self.preamble.write_settings(to);
            to.arg(id.to_stored()).arg(fence.get());
        };
        let call = Call::new(&scripts::FORCE_RELEASE, LockCommand::KEYS, &write);
        self.run_apart(&name, call, deadline, decode::force_release).await
    }
}

impl RedisStore {
    /// The connection to which a name is pinned, so that its commands usually keep their order.
    pub(super) fn batcher(&self, name: &LockName) -> &Batcher<Preamble> {
        &self.commands[lane_number(name, self.commands.len())]
    }

    /// Returns when the server has been checked, as [`Readiness::by`] does.
    pub(super) async fn ready(&self, deadline: Instant) -> Result<(), StoreError> {
        if self.readiness.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        // Boxed: otherwise the future of every command would have room for it.
        Box::pin(self.readiness.by(deadline)).await
    }

    /// Renews leases that need the same acknowledgements.
    async fn renew_alike(
        &self,
        batch: &[Renewal],
        acks: Replication,
        deadline: Instant,
    ) -> Result<Vec<Result<RenewAnswer, StoreError>>, StoreError> {
        let write = |to: &mut Cmd| {
            // One text for all: these are very many.
            let mut text = String::new();
            for one in batch {
                text.clear();
                self.preamble.keys.write_lease(&mut text, &one.name);
                to.arg(&*text);
            }
            self.preamble.write_settings(to);
            for one in batch {
                text.clear();
                one.id.write_stored(&mut text);
                to.arg(&*text).arg(one.fence.get()).arg(millis(one.ttl.get()));
            }
        };
        self.ready(deadline).await?;
        let other = batch.first().map_or(0, |one| lane_number(&one.name, self.commands.len()));
        if !acks.are_asked() {
            let call = Call::new(&scripts::RENEW, batch.len(), &write);
            let other = self.commands[other].lane();
            let lane = lane_that_works(&self.renewals, other, &*self.clock, deadline).await;
            return decode::renew(lane.call(call, deadline).await?, batch.len());
        }
        let call = Call::new(&scripts::RENEW_AND_TOUCH, batch.len(), &write).waiting_for(acks);
        let called = self.waiting.lanes(acks).renew(call, other, &*self.clock, deadline).await?;
        let Answered { answer, counted } = Answered::of(called, true);
        let mut answers = decode::renew(answer, batch.len())?;
        if let Err(error) = acknowledged(acks, counted.as_ref()) {
            // A lease that is gone needs no copies.
            let renewed =
                |answer: &&mut Result<_, _>| matches!(answer, Ok(RenewAnswer::Renewed { .. }));
            answers.iter_mut().filter(renewed).for_each(|answer| *answer = Err(error.clone()));
        }
        Ok(answers)
    }

    /// Sends a command on the connection of its name.
    async fn run<T>(
        &self,
        command: LockCommand,
        deadline: Instant,
        decode: impl FnOnce(Answered) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let name = command.name.clone();
        let answer = async {
            self.ready(deadline).await?;
            let acks = command.acks;
            if acks.are_asked() {
                let lanes = self.waiting.lanes(acks);
                let lane = lane_number(&name, lanes.commands.len());
                return lanes.commands[lane].send(command, deadline).await;
            }
            self.batcher(&name).send(command, deadline).await
        };
        let answer = answer.await.and_then(decode);
        answer.map_err(|error| self.named_if_unacknowledged(error).for_lock(&name))
    }

    /// The same error; if replicas are missing, it names their master.
    fn named_if_unacknowledged(&self, error: StoreError) -> StoreError {
        if !error.is_unacknowledged() {
            return error;
        }
        let dialer = self.dialer();
        dialer.named_in(dialer.route.epoch(), error)
    }

    /// Looks at so many locks as one script may.
    async fn look(
        &self,
        names: &[LockName],
        deadline: Instant,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        self.ready(deadline).await?;
        let write = |to: &mut Cmd| {
            for name in names {
                self.preamble.write_keys(to, name);
            }
            self.preamble.write_settings(to);
        };
        let call = Call::new(&scripts::INSPECT, LockCommand::KEYS * names.len(), &write);
        let answer = self.pool.exchange(call, &*self.clock, deadline).await?;
        decode::inspect(answer, names.len())
    }

    /// Runs a script on a pooled connection, out of the way of leases.
    async fn run_apart<T>(
        &self,
        name: &LockName,
        call: Call<'_>,
        deadline: Instant,
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = async {
            self.ready(deadline).await?;
            self.pool.exchange(call, &*self.clock, deadline).await
        };
        answer.await.and_then(decode).map_err(|error| error.for_lock(name))
    }
}

/// An error about the only lock of a command names it.
fn for_only(names: &[LockName], error: StoreError) -> StoreError {
    match names {
        [name] => error.for_lock(name),
        _ => error,
    }
}

/// A lock of which only the checks of a runtime know.
pub(super) fn probe(runtime: RuntimeId) -> Result<LockName, StoreError> {
    probe_named(&format!("preflight:{runtime}"))
}

/// A lock of which only checks know, by its name.
pub(super) fn probe_named(name: &str) -> Result<LockName, StoreError> {
    LockName::new(name).map_err(|error| {
        StoreError::new(StoreErrorKind::Config, error.to_string(), "report this as a bug")
    })
}

/// Which of so many connections a name uses.
pub(super) fn lane_number(name: &LockName, lanes: usize) -> usize {
    if lanes == 1 {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    usize::try_from(hasher.finish() % lanes as u64).unwrap_or(0)
}
