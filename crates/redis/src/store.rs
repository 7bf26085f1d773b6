use std::{
    fmt,
    sync::{Arc, Weak, atomic::AtomicBool},
};

use futures_util::future::FutureExt;
use leasehold_core::{
    Clock, Instant, LockName, LockStore, Replication, RuntimeId, RuntimeLabel, StoreError,
    StoreErrorKind,
    store::{
        Acquire, AcquireAnswer, Command, ForceRelease, ForceReleaseAnswer, Heartbeats, HoldAnswer,
        Inspect, Inspection, KeyScheme, Listener, RenewAnswer, Renewal, Renewals, Reply,
        StoreFuture, Waiter,
    },
};
use redis::{Cmd, Value};
use tokio::runtime::Handle;

use super::{
    acknowledge::{Answered, acknowledged},
    batcher::MAX_COMMANDS,
    command::{LockCommand, Preamble},
    config::RedisConfig,
    connections::Connections,
    decode,
    dialer::Dialer,
    parts::{in_order, parts},
    pool::{Errand, RedisPool},
    readiness::{Readiness, Trial},
    script::{Script, ScriptCall, millis},
    scripts,
    subscriber::Subscriptions,
};

/// Leases on a Redis server, version 6.2 or newer.
///
/// One multiplexed connection, or a few, carry acquires and releases, each name always on the same
/// one. Renewals have one of their own, so that they wait behind no command. Commands that wait
/// for acknowledgements have connections of their own. Forced releases and scans use a pool. One more connection
/// brings the pushes of the server.
pub struct RedisStore {
    pub(super) preamble: Arc<Preamble>,
    pub(super) connections: Connections,
    pub(super) pool: RedisPool,
    pub(super) subscriptions: Subscriptions,
    pub(super) readiness: Arc<Readiness>,
}

/// How many locks one script looks at: they share the 1,024 places that it looks at, at least 128 for each.
/// On a Cluster, where a script may not declare keys of several slots, a node is asked about one at a time.
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
        let dialer = Arc::new(Dialer::new(config, clock, Some(&runtime))?);
        let preamble = Arc::new(Preamble::new(config));
        // On a Cluster, a call may not declare keys of several slots.
        let gathers: Option<Arc<AtomicBool>> = config.node.as_ref().map(|_| Arc::default());
        let connections = Connections::new(
            Arc::clone(&dialer),
            Arc::clone(&preamble),
            runtime.clone(),
            config.connections,
            gathers.clone(),
        );
        let subscriptions = Subscriptions::of_one(Arc::clone(&dialer), runtime.clone());
        let pool = RedisPool::on(config, Arc::clone(&dialer), Some(runtime.clone()))?;
        let readiness = Readiness {
            dialer,
            preamble: Arc::clone(&preamble),
            channel: config.keys.channel(runtime_id),
            acks: config.acks,
            limit: config.connect_timeout.saturating_add(config.command_timeout),
            runtime,
            passed: probe.is_none().into(),
            trial: probe.map(|name| {
                let connection = connections.plain.of_name(&name).connection().clone();
                Trial { name, connection }
            }),
            gathers,
            failed: Arc::default(),
        };
        Ok(Self { connections, pool, preamble, subscriptions, readiness: Arc::new(readiness) })
    }

    /// What makes its connections.
    pub(super) fn dialer(&self) -> &Arc<Dialer> {
        &self.readiness.dialer
    }

    /// The names of this store's keys.
    pub fn keys(&self) -> &KeyScheme {
        &self.preamble.keys
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("endpoint", &self.dialer().endpoint)
            .finish_non_exhaustive()
    }
}

impl LockStore for RedisStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        // Each is boxed by itself: otherwise a release would take the room of the largest.
        match command {
            Command::Acquire(acquire) => Box::pin(self.acquire(acquire, deadline)),
            Command::Heartbeat(heartbeats) => replied(self.heartbeat(heartbeats, deadline).map(Ok)),
            Command::Hold(hold) => {
                Box::pin(self.run(LockCommand::Hold(hold), deadline, decode::hold))
            }
            Command::Release(release) => {
                Box::pin(self.run(LockCommand::Release(release), deadline, decode::release))
            }
            Command::Renew(renewals) => replied(self.renew(renewals, deadline)),
            Command::Withdraw(withdraw) => {
                Box::pin(self.run(LockCommand::Withdraw(withdraw), deadline, decode::withdraw))
            }
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
    async fn acquire(&self, command: Acquire, deadline: Instant) -> Result<Reply, StoreError> {
        let ttl = command.ttl;
        let decode = |answer: &Value| decode::acquire(answer, ttl);
        let reply = self.run(LockCommand::Acquire(command), deadline, decode).await;
        let reply = reply.map_err(|error| error.for_ttl(ttl))?;
        if !matches!(reply, Reply::Acquire(AcquireAnswer::Busy { .. })) {
            self.connections.plain.prepare_renewals();
        }
        Ok(reply)
    }

    /// Repeats the acquires of many waiters: a call for every 64 names of a connection, all at once. When a
    /// connection fails, only its own names fail.
    async fn heartbeat(
        &self,
        Heartbeats { batch, label }: Heartbeats,
        deadline: Instant,
    ) -> AcquireAnswers {
        let alike = |waiter: &Waiter| {
            let (connection, retention) = (&self.connections.plain, &self.preamble.fencing);
            (connection.number(&waiter.name), retention.retention_millis(&waiter.name))
        };
        let parts = parts(batch, MAX_COMMANDS, alike);
        in_order(&parts, |part| self.heartbeat_call(part, &label, deadline)).await
    }

    async fn heartbeat_call(
        &self,
        part: &[Waiter],
        label: &RuntimeLabel,
        deadline: Instant,
    ) -> AcquireAnswers {
        let Some(first) = part.first() else { return Vec::new() };
        let command = |waiter: &Waiter| LockCommand::Heartbeat(waiter.clone(), label.clone());
        let commands: Vec<_> = part.iter().map(command).collect();
        let answers = match self.readiness.by(deadline).await {
            Ok(()) => {
                self.connections.plain.of_name(&first.name).deliver(&commands, deadline).await
            }
            Err(error) => part.iter().map(|_| Err(error.clone())).collect(),
        };
        let named = |(answer, waiter): (Result<Answered, StoreError>, &Waiter)| {
            answer
                .and_then(|value| decode::acquire(&value.answer, waiter.ttl))
                .map_err(|error| error.for_ttl(waiter.ttl).for_lock(&waiter.name))
        };
        answers.into_iter().zip(part).map(named).collect()
    }

    async fn renew(
        &self,
        Renewals { batch }: Renewals,
        deadline: Instant,
    ) -> Result<Vec<Result<RenewAnswer, StoreError>>, StoreError> {
        let renew = async |part: &[Renewal]| {
            let answers = self.renew_alike(part, deadline).await;
            answers.map_err(|error| error.for_ttl(part[0].ttl))
        };
        let alike = |one: &Renewal| (one.acks, self.preamble.fencing.retention_millis(&one.name));
        let parts = parts(batch, usize::MAX, alike);
        match &parts[..] {
            [] => Ok(Vec::new()),
            // As a rule.
            [(_, all)] => renew(all).await,
            _ => {
                let renewing = in_order(&parts, |part| {
                    let failed = |error| vec![Err(error); part.len()];
                    renew(part).map(move |answers| answers.unwrap_or_else(failed))
                });
                Ok(renewing.await)
            }
        }
    }

    async fn inspect(
        &self,
        Inspect { names }: Inspect,
        deadline: Instant,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        let mut seen = Vec::with_capacity(names.len());
        for part in names.chunks(MAX_INSPECTED) {
            let inspected = self.inspect_part(part, deadline).await;
            seen.extend(inspected.map_err(|error| match &names[..] {
                [name] => error.for_lock(name),
                _ => error,
            })?);
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
        let (preamble, of) = (Arc::clone(&self.preamble), name.clone());
        let write = move |to: &mut Cmd| {
            to.arg(&preamble.keys.all(&of));
            preamble.write_settings(to, &of);
            to.arg(id.to_stored()).arg(fence.get());
        };
        let answer = self.run_apart(&scripts::FORCE_RELEASE, write, deadline).await;
        answer
            .and_then(|answer| decode::force_release(&answer))
            .map_err(|error| error.for_lock(&name))
    }
}

impl RedisStore {
    /// Renews leases that need the same acknowledgements.
    async fn renew_alike(
        &self,
        batch: &[Renewal],
        deadline: Instant,
    ) -> Result<Vec<Result<RenewAnswer, StoreError>>, StoreError> {
        let write = |to: &mut Cmd| {
            for one in batch {
                to.arg(self.preamble.keys.lease(&one.name));
            }
            self.preamble.write_settings(to, &batch[0].name);
            for one in batch {
                to.arg(one.id.to_stored()).arg(one.fence.get()).arg(millis(one.ttl.get()));
            }
        };
        self.readiness.by(deadline).await?;
        let acks = batch[0].acks;
        let script = if acks.are_asked() { &scripts::RENEW_AND_TOUCH } else { &scripts::RENEW };
        let call = ScriptCall::new(script, batch.len(), &write).waiting_for(acks);
        let connections = self.connections.of(acks);
        let Answered { answer, counted } =
            connections.renew(call, &batch[0].name, deadline).await?;
        let mut answers = decode::renew(&answer, batch.len())?;
        if let Err(error) = acknowledged(acks, counted.as_ref()) {
            // A lease that is gone needs no copies.
            let renewed =
                |answer: &&mut Result<_, _>| matches!(answer, Ok(RenewAnswer::Renewed { .. }));
            answers.iter_mut().filter(renewed).for_each(|answer| *answer = Err(error.clone()));
        }
        Ok(answers)
    }

    /// Sends a command on the connection of its name. A grant and a hold that need acknowledgements fail
    /// without them.
    async fn run<T: Into<Reply>>(
        &self,
        command: LockCommand,
        deadline: Instant,
        decode: impl FnOnce(&Value) -> Result<T, StoreError>,
    ) -> Result<Reply, StoreError> {
        let (name, acks) = (command.name().clone(), command.acks());
        let reply = async {
            self.readiness.by(deadline).await?;
            let connections = self.connections.of(acks);
            let sent = connections.of_name(&name).send(command, deadline).await;
            let Answered { answer, counted } = sent?;
            let reply = decode(&answer)?.into();
            if needs_acks(&reply) {
                let dialer = self.dialer();
                // If replicas are missing, their master is named.
                let named = |error| dialer.named_in(dialer.route.epochs().now(), error);
                acknowledged(acks, counted.as_ref()).map_err(named)?;
            }
            Ok(reply)
        };
        reply.await.map_err(|error: StoreError| error.for_lock(&name))
    }

    /// Looks at so many locks as one script may, on the connection of the first one: where no new connection can be
    /// made, or none in time, a look still shows whether the server answers.
    async fn inspect_part(
        &self,
        names: &[LockName],
        deadline: Instant,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        let write = |to: &mut Cmd| {
            for name in names {
                to.arg(&self.preamble.keys.all(name));
            }
            // Whichever: a look does not need the retention.
            self.preamble.write_settings(to, &names[0]);
        };
        self.readiness.by(deadline).await?;
        let call = ScriptCall::new(&scripts::INSPECT, LockCommand::KEYS * names.len(), &write);
        let connection = self.connections.plain.of_name(&names[0]).connection();
        let Answered { answer, .. } = connection.call(call, deadline).await?;
        decode::inspect(&answer, names.len())
    }

    /// Runs a script on one lock on a pooled connection, out of the way of leases.
    async fn run_apart(
        &self,
        script: &Script,
        write: impl Fn(&mut Cmd) + Send + Sync + 'static,
        deadline: Instant,
    ) -> Result<Value, StoreError> {
        self.readiness.by(deadline).await?;
        let errand = Errand::script(script, LockCommand::KEYS, write, Replication::NONE);
        Ok(self.pool.run(errand, deadline).await?.answer)
    }
}

fn needs_acks(reply: &Reply) -> bool {
    let is_granted = matches!(reply, Reply::Acquire(AcquireAnswer::Granted(_)));
    is_granted || matches!(reply, Reply::Hold(HoldAnswer::Held { .. }))
}

type AcquireAnswers = Vec<Result<AcquireAnswer, StoreError>>;

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
