use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use futures_util::future::{FutureExt, join_all};
use leasehold_core::{
    Clock, Instant, LockName, LockStore, Replication, RuntimeId, StoreError, StoreErrorKind,
    store::{
        Acquire, AcquireAnswer, Command, ForceRelease, ForceReleaseAnswer, HoldAnswer, Inspect,
        Inspection, KeyScheme, Listener, RenewAnswer, Renewal, Renewals, Reply, StoreFuture,
    },
};
use redis::{Cmd, Value};
use tokio::runtime::Handle;

use super::{
    acknowledge::{Answered, acknowledged},
    args::millis,
    call::ScriptCall,
    channel::Channel,
    command::LockCommand,
    config::RedisConfig,
    connections::{Connections, Recipe},
    decode,
    dialer::Dialer,
    pool::RedisPool,
    preamble::Preamble,
    readiness::{Readiness, Trial},
    scripts,
    shared_calls::Sharing,
    subscriber::{Dialers, Subscriptions},
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
    pub(super) connections: Connections,
    pub(super) pool: RedisPool,
    pub(super) subscriptions: Subscriptions,
    pub(super) readiness: Arc<Readiness>,
    pub(super) clock: Arc<dyn Clock>,
    /// How many locks one script looks at.
    inspected_at_once: usize,
}

/// How many it may be: they share the 1,024 places that one script looks at, at least 128 for each.
const MAX_INSPECTED: usize = 8;

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
        store.readiness.attempt().await?;
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
        let tag = config.node.as_ref().map(|node| Arc::clone(&node.tag));
        let preamble = Arc::new(Preamble::new(config.keys.clone(), config.fencing).at(tag));
        // On a Cluster, a call may not declare keys of several slots.
        let gathers = Arc::<AtomicBool>::default();
        let (sharing, behind_waits) = match config.node {
            None => (Sharing::All, Sharing::All),
            Some(_) => (Sharing::Quick(Arc::clone(&gathers)), Sharing::None),
        };
        let recipe = Recipe {
            dialer: Arc::clone(&dialer),
            preamble: Arc::clone(&preamble),
            clock: Arc::clone(&clock),
            runtime: runtime.clone(),
            count: config.connections,
        };
        let connections = Connections::new(recipe, &sharing, behind_waits);
        let dialers = Arc::clone(&dialer) as Arc<dyn Dialers>;
        let subscriptions = Subscriptions::new(dialers, Arc::clone(&clock), runtime.clone());
        let pool = RedisPool::on(config, Arc::clone(&dialer), Some(runtime.clone()))?;
        let readiness = Readiness {
            dialer,
            preamble: Arc::clone(&preamble),
            channel: config.keys.channel(runtime_id),
            acks: config.acks,
            limit: config.connect_timeout.saturating_add(config.command_timeout),
            clock: Arc::clone(&clock),
            runtime,
            passed: probe.is_none().into(),
            trial: probe.map(|name| {
                let connection = connections.plain().of_name(&name).connection().clone();
                Trial { name, connection }
            }),
            gathers: config.node.as_ref().map(|_| gathers),
            failed: Arc::default(),
        };
        Ok(Self {
            connections,
            pool,
            preamble,
            subscriptions,
            readiness: Arc::new(readiness),
            clock,
            inspected_at_once: if config.node.is_some() { 1 } else { MAX_INSPECTED },
        })
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
}

impl LockStore for RedisStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        // Each is boxed by itself: otherwise a release would take the room of the largest.
        match command {
            Command::Acquire(acquire) => replied(self.acquire(acquire, deadline)),
            Command::Heartbeat(heartbeats) => replied(self.heartbeat(heartbeats, deadline).map(Ok)),
            Command::Hold(hold) => {
                let is_held = |answer: &HoldAnswer| matches!(answer, HoldAnswer::Held { .. });
                replied(self.run(LockCommand::Hold(hold), deadline, decode::hold, is_held))
            }
            Command::Release(release) => {
                replied(
                    self.run(LockCommand::Release(release), deadline, decode::release, |_| false),
                )
            }
            Command::Renew(renewals) => replied(self.renew(renewals, deadline)),
            Command::Withdraw(withdraw) => replied(self.run(
                LockCommand::Withdraw(withdraw),
                deadline,
                decode::withdraw,
                |_| false,
            )),
            Command::Inspect(inspect) => replied(self.inspect(inspect, deadline)),
            Command::Scan(scan) => replied(self.scan(scan, deadline)),
            Command::ForceRelease(force) => replied(self.force_release(force, deadline)),
        }
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.subscriptions.listen(runtime, self.preamble.keys.channel(runtime), listener);
    }
}

/// The reply of a command.
pub(crate) fn replied<'a, T: Into<Reply>>(
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
        let ttl = command.ttl;
        let is_granted = |answer: &AcquireAnswer| matches!(answer, AcquireAnswer::Granted(_));
        let decode = |answer| decode::acquire(answer, ttl);
        let answer = self.run(LockCommand::Acquire(command), deadline, decode, is_granted).await;
        let answer = answer.map_err(|error| error.for_ttl(ttl))?;
        if !matches!(answer, AcquireAnswer::Busy { .. }) {
            self.connections.plain().prepare_renewals();
        }
        Ok(answer)
    }

    async fn renew(
        &self,
        Renewals { batch }: Renewals,
        deadline: Instant,
    ) -> Result<Vec<Result<RenewAnswer, StoreError>>, StoreError> {
        let renew = async |part: &[Renewal]| {
            let answers = self.renew_alike(part, part[0].acks, deadline).await;
            answers.map_err(|error| error.for_ttl(part[0].ttl))
        };
        // As a rule all need the same.
        let parts: Vec<_> = batch.chunk_by(|one, next| one.acks == next.acks).collect();
        match parts[..] {
            [] => Ok(Vec::new()),
            [all] => renew(all).await,
            _ => {
                let renewing = parts.iter().map(async |part| {
                    renew(part).await.unwrap_or_else(|error| vec![Err(error); part.len()])
                });
                Ok(join_all(renewing).await.into_iter().flatten().collect())
            }
        }
    }

    async fn inspect(
        &self,
        Inspect { names }: Inspect,
        deadline: Instant,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        let mut seen = Vec::with_capacity(names.len());
        for part in names.chunks(self.inspected_at_once) {
            let inspected = self.inspect_part(part, deadline).await;
            seen.extend(inspected.map_err(|error| for_only(&names, error))?);
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
        let call = ScriptCall::new(&scripts::FORCE_RELEASE, LockCommand::KEYS, &write);
        self.run_apart(&name, call, deadline, decode::force_release).await
    }
}

impl RedisStore {
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
            for one in batch {
                to.arg(self.preamble.keys.lease(&one.name));
            }
            self.preamble.write_settings(to);
            for one in batch {
                to.arg(one.id.to_stored()).arg(one.fence.get()).arg(millis(one.ttl.get()));
            }
        };
        self.ready(deadline).await?;
        let script = if acks.are_asked() { &scripts::RENEW_AND_TOUCH } else { &scripts::RENEW };
        let call = ScriptCall::new(script, batch.len(), &write).waiting_for(acks);
        let connections = self.connections.of(acks);
        let Answered { answer, counted } =
            connections.renew(call, &batch[0].name, deadline).await?;
        let mut answers = decode::renew(answer, batch.len())?;
        if let Err(error) = acknowledged(acks, counted.as_ref()) {
            // A lease that is gone needs no copies.
            let renewed =
                |answer: &&mut Result<_, _>| matches!(answer, Ok(RenewAnswer::Renewed { .. }));
            answers.iter_mut().filter(renewed).for_each(|answer| *answer = Err(error.clone()));
        }
        Ok(answers)
    }

    /// Sends a command on the connection of its name. An answer that `needs` acknowledgements fails
    /// without them.
    async fn run<T>(
        &self,
        command: LockCommand,
        deadline: Instant,
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
        needs: impl FnOnce(&T) -> bool,
    ) -> Result<T, StoreError> {
        let (name, acks) = (command.name().clone(), command.acks());
        let answer = async {
            self.ready(deadline).await?;
            let connections = self.connections.of(acks);
            let sent = connections.of_name(&name).send(command, deadline).await;
            let Answered { answer, counted } = sent?;
            let answer = decode(answer)?;
            if needs(&answer) {
                acknowledged(acks, counted.as_ref())?;
            }
            Ok(answer)
        };
        answer.await.map_err(|error| self.named_if_unacknowledged(error).for_lock(&name))
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
    async fn inspect_part(
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
        let call = ScriptCall::new(&scripts::INSPECT, LockCommand::KEYS * names.len(), &write);
        let answer = self.pool.exchange(call, &*self.clock, deadline).await?;
        decode::inspect(answer.answer, names.len())
    }

    /// Runs a script on a pooled connection, out of the way of leases.
    async fn run_apart<T>(
        &self,
        name: &LockName,
        call: ScriptCall<'_>,
        deadline: Instant,
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = async {
            self.ready(deadline).await?;
            self.pool.exchange(call, &*self.clock, deadline).await
        };
        answer.await.and_then(|answer| decode(answer.answer)).map_err(|error| error.for_lock(name))
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
///
/// # Errors
///
/// [`StoreError`] if its name is none, which is a bug.
pub fn probe(runtime: RuntimeId) -> Result<LockName, StoreError> {
    probe_named(&format!("preflight:{runtime}"))
}

/// A lock of which only checks know, by its name.
pub(super) fn probe_named(name: &str) -> Result<LockName, StoreError> {
    LockName::new(name).map_err(|error| {
        StoreError::new(StoreErrorKind::Config, error.to_string(), "report this as a bug")
    })
}
