use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::{Cmd, ErrorKind, RedisError, Value, aio::MultiplexedConnection, from_redis_value};
use tokio::{runtime::Handle, sync::Mutex, task::JoinSet};

use super::{
    acknowledge::{Answered, refused},
    classify::{NOT_THERE, NotDialed, classify_dial, no_runtime, not_in_time},
    cluster::is_elsewhere,
    command::{LockCommand, Preamble},
    decode::text,
    lane::{Call, Lane},
    login::Dialer,
    scripts,
    subscriber::subscribe,
};
use crate::{
    clock::{Clock, Instant, within},
    store::{
        StoreError,
        StoreErrorKind::{self, Config, Definite},
    },
    types::{Acks, LockName},
};

/// The oldest server whose scripts behave as these need.
const OLDEST: (u32, u32) = (6, 2);

/// How the error of a new connection to a replica begins.
pub(super) const REPLICA: &str = "the server is a replica of";

/// Checks that a server is a master and new enough, and a node of a Cluster only where one is
/// expected: a node refuses commands about the slots of others.
pub(super) async fn check_server(
    connection: &mut MultiplexedConnection,
    is_node: bool,
) -> Result<(), NotDialed> {
    let hello = hello(connection).await.map_err(|error| not_greeted(&error))?;
    let field = |name| hello.get(name).and_then(text);
    let version = field("version").ok_or_else(|| tells_not("version"))?;
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < OLDEST {
        return Err(too_old(&version).into());
    }
    let refused = match field("mode").as_deref() {
        Some("cluster") if !is_node => refusal(
            Config,
            "the server is a node of a Redis Cluster",
            "write redis+cluster://host,host,host, with some of its nodes",
        ),
        Some("standalone") if is_node => {
            refusal(Config, "the server is not a node of a Cluster any more", NOT_THERE)
        }
        Some("sentinel") => refusal(
            Config,
            "the server is a Sentinel, which keeps no data",
            "write redis+sentinel://host,host,host/master, with all Sentinels and the master's name",
        ),
        _ => match field("role").as_deref() {
            Some("master") => return Ok(()),
            // It is retried while a task waits: the address may lead to the master soon.
            Some(_) => refusal(
                Definite,
                format!("{REPLICA} {}, and has no say about locks", master_of(connection).await),
                "write the master's address",
            ),
            None => tells_not("role"),
        },
    };
    Err(refused.into())
}

/// The address of the master, as far as it is known, if a server is a replica.
pub(super) async fn replica_of(
    connection: &mut MultiplexedConnection,
) -> Result<Option<String>, RedisError> {
    if hello(connection).await?.get("role").and_then(text).as_deref() == Some("master") {
        return Ok(None);
    }
    Ok(Some(master_of(connection).await))
}

/// What a server is. `INFO` has the same facts, but may be denied. `HELLO` is always allowed.
pub(super) async fn hello(
    connection: &mut MultiplexedConnection,
) -> Result<BTreeMap<String, Value>, RedisError> {
    let answer = redis::cmd("HELLO").query_async(connection).await?;
    // Something else than a map has none of the fields.
    Ok(from_redis_value(answer).unwrap_or_default())
}

/// The address of a replica's master. The user may lack the right to ask for it.
async fn master_of(connection: &mut MultiplexedConnection) -> String {
    type OfReplica = (String, String, u16, String, i64);
    match redis::cmd("ROLE").query_async::<OfReplica>(connection).await {
        Ok((_, host, port, ..)) => format!("{host}:{port}"),
        Err(_) => "another server".into(),
    }
}

/// An error that follows from what the server has answered.
fn refusal(
    kind: StoreErrorKind,
    what: impl Into<Cow<'static, str>>,
    remedy: &'static str,
) -> StoreError {
    StoreError::new(kind, what, remedy).as_answer()
}

fn tells_not(what: &str) -> StoreError {
    refusal(
        Config,
        format!("the server does not tell its {what} in answer to HELLO"),
        "connect to Redis 6.2 or newer, or to a server that imitates it fully",
    )
}

/// The failure of the first command, `HELLO`: 5 does not know it, 6.0 wants an argument for it.
pub(super) fn not_greeted(error: &RedisError) -> NotDialed {
    let words = error.to_string();
    let is_too_old = error.kind() == ErrorKind::RESP3NotSupported
        || words.contains("unknown command")
        || words.contains("wrong number of arguments");
    if is_too_old { too_old("older than 6.2").into() } else { NotDialed::because(error) }
}

fn too_old(version: &str) -> StoreError {
    refusal(Config, format!("the server's version is {version}"), "use Redis 6.2 or newer")
}

/// The check of a server before the first command of a store: it runs every kind of command once.
///
/// Commands wait for it, each until its own deadline. One attempt is made at a time, on a task of
/// its own, which goes on when a command gives up. Once it has passed, it is never made again.
#[derive(Debug)]
// ADR 0029
pub(super) struct Readiness {
    pub(super) dialer: Arc<Dialer>,
    pub(super) lane: Lane,
    pub(super) preamble: Arc<Preamble>,
    /// The lock whose keys are used; `None` if there is no check.
    pub(super) probe: Option<LockName>,
    pub(super) channel: String,
    /// Whether the server takes calls that declare no keys; `None` where none are made.
    pub(super) gathers: Option<Arc<AtomicBool>>,
    /// What grants will wait for.
    pub(super) acks: Acks,
    /// How long the connection and the scripts of an attempt may take.
    pub(super) limit: Duration,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runtime: Handle,
    pub(super) passed: AtomicBool,
    pub(super) failed: Failed,
}

/// When the last attempt failed, and why. It is locked during an attempt.
type Failed = Arc<Mutex<Option<(Instant, StoreError)>>>;

/// For how long the error of a failed attempt is returned to all callers.
fn stands(failed: &StoreError) -> Duration {
    // An outage may be over at any moment; a refusal lasts until an operator lifts it.
    Duration::from_millis(if failed.kind().is_transient() { 50 } else { 1000 })
}

impl Readiness {
    /// Returns when the check has passed, or with the error of the last attempt: before the command
    /// was sent. Dropping the future does not end the attempt: other commands wait for it.
    pub(super) async fn by(self: &Arc<Self>, deadline: Instant) -> Result<(), StoreError> {
        let attempt = within(&*self.clock, deadline, self.attempt()).await;
        attempt.unwrap_or_else(|| {
            not_in_time().map_err(|error| error.from_endpoint(&*self.dialer.endpoint))
        })
    }

    /// Makes an attempt, even right after a failure.
    pub(super) async fn now(&self) -> Result<(), StoreError> {
        self.run(&mut *self.failed.lock().await).await
    }

    async fn attempt(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut failed = Arc::clone(&self.failed).lock_owned().await;
        if self.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some((at, error)) = &*failed
            && self.clock.now().saturating_since(*at) < stands(error)
        {
            return Err(error.clone());
        }
        let readiness = Arc::clone(self);
        let attempt = self.runtime.spawn(async move { readiness.run(&mut failed).await });
        attempt.await.unwrap_or_else(|died| Err(no_runtime(&died)))
    }

    async fn run(&self, failed: &mut Option<(Instant, StoreError)>) -> Result<(), StoreError> {
        let outcome = self.send().await;
        *failed = outcome.as_ref().err().map(|error| {
            tracing::debug!(%error, "the check of the server failed");
            (self.clock.now(), error.clone())
        });
        self.passed.fetch_or(outcome.is_ok(), Ordering::AcqRel);
        outcome
    }

    /// Runs the scripts, and subscribes, both at once. An error of the scripts is told first, as it
    /// concerns every command.
    async fn send(&self) -> Result<(), StoreError> {
        let Some(probe) = &self.probe else { return Ok(()) };
        // A task of its own, which ends with this future: to connect panics where there is no IO.
        let mut hearing = JoinSet::new();
        let (dialer, clock) = (Arc::clone(&self.dialer), Arc::clone(&self.clock));
        let channel = self.channel.clone();
        let limit = self.limit;
        let hear = async move {
            // It disconnects soon; a missing right shows before a task waits, and so does another master at the
            // address, as both connections are there at one time.
            let subscribing = subscribe(&dialer, &*clock, ("SUBSCRIBE", &channel), |_| Ok(()));
            let mut heard = subscribing.await?;
            if !dialer.is_node {
                return Ok(heard);
            }
            // Without this right leases would be lost while their slot moves.
            let asking = redis::cmd("ASKING");
            let asked = asking.query_async::<()>(&mut heard.connection);
            match within(&*clock, clock.now() + limit, asked).await {
                // A service that moves no slots may not have it.
                Some(Err(error)) if error.code() == Some("NOPERM") => {
                    Err(dialer.named(classify_dial(&error)))
                }
                Some(_) => Ok(heard),
                None => not_in_time().map_err(|error| dialer.named(error)),
            }
        };
        hearing.spawn_on(hear, &self.runtime);
        self.run_scripts(probe).await?;
        match hearing.join_next().await {
            Some(heard) => heard.unwrap_or_else(|died| Err(no_runtime(&died))).map(drop),
            None => Ok(()),
        }
    }

    async fn run_scripts(&self, probe: &LockName) -> Result<(), StoreError> {
        let deadline = self.clock.now() + self.limit;
        let write = |to: &mut Cmd| {
            self.preamble.write_keys(to, probe);
            to.arg(&self.channel);
        };
        let call = Call::new(&scripts::PREFLIGHT, LockCommand::KEYS, &write);
        // Both EVAL and EVALSHA: the user may lack the right to one of them.
        let sent = async {
            self.lane.call(call.with_body(), deadline).await?;
            let acks = self.acks.without_replicas();
            let called = self.lane.call(call.waiting_for(acks), deadline).await?;
            refused(&Answered::of(called, acks.are_asked()))
        };
        match sent.await {
            // The rights are checked before the slot; the keys are those of another node meanwhile.
            Err(error) if is_elsewhere(&error) => {}
            sent => drop(sent.map_err(StoreError::not_sent)?),
        }
        self.try_gathering(probe, deadline).await
    }

    /// Makes a shared call as on a node of a Cluster. A server that refuses it, as managed ones may, is
    /// sent none.
    async fn try_gathering(&self, probe: &LockName, deadline: Instant) -> Result<(), StoreError> {
        let Some(gathers) = &self.gathers else { return Ok(()) };
        let attempt = [LockCommand::of_nobody(probe)];
        let write = |to: &mut Cmd| self.preamble.write_gathered(to, &attempt);
        match self.lane.call(Call::new(&scripts::GATHERED, 0, &write), deadline).await {
            Ok(answer) => {
                let not_served = Value::Array(vec![Value::Int(0)]);
                gathers.store(answer == not_served, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.is_answer() => Ok(()),
            Err(error) => Err(error.not_sent()),
        }
    }
}
