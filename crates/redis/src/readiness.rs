use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, Replication, StoreError, StoreErrorKind, within, without_words,
};
use redis::{Cmd, Value, aio::MultiplexedConnection};
use tokio::{runtime::Handle, sync::Mutex, task::JoinSet};

use super::{
    acknowledge::refused,
    classify::{classify, classify_dial, in_namespace, is_full, no_runtime, not_in_time},
    cluster::is_elsewhere,
    command::{LockCommand, Preamble},
    config::RedisConfig,
    connection::Connection,
    decode::shown,
    dialect::Dialect,
    dialer::Dialer,
    needed::not_run,
    script::{ScriptCall, evaluate},
    scripts,
    subscriber::subscribe,
};
use crate::durations::{FAILURE_LASTS, FINDING_LASTS};

/// The check of a server before the first command of a store: it runs every kind of command once.
///
/// Commands wait for it, each until its own deadline. One attempt is made at a time, on a task of
/// its own, which goes on when a command gives up. Once it has passed, it is never made again.
// ADR 0029
pub(super) struct Readiness {
    pub(super) dialer: Arc<Dialer>,
    pub(super) preamble: Arc<Preamble>,
    /// `None` if there is no check.
    pub(super) trial: Option<Trial>,
    pub(super) channel: String,
    /// Whether the server takes calls that declare no keys; `None` where none are made.
    pub(super) gathers: Option<Arc<AtomicBool>>,
    /// What grants will wait for.
    pub(super) acks: Replication,
    /// How long the connection and the scripts of an attempt may take.
    pub(super) limit: Duration,
    pub(super) runtime: Handle,
    pub(super) passed: AtomicBool,
    pub(super) failed: LastFailure,
}

/// The lock whose keys are used, and the connection of its commands.
pub(super) struct Trial {
    pub(super) name: LockName,
    pub(super) connection: Connection,
}

/// When the last attempt failed, and why. It is locked during an attempt.
type LastFailure = Arc<Mutex<Option<(Instant, StoreError)>>>;

/// For how long the error of a failed attempt is returned to all callers.
fn stands(failed: &StoreError) -> Duration {
    // An outage may be over at any moment; a refusal lasts until an operator lifts it.
    if failed.kind().is_transient() { FAILURE_LASTS } else { FINDING_LASTS }
}

impl Readiness {
    /// Returns when the check has passed, or with the error of the last attempt: before the command
    /// was sent. Dropping the future does not end the attempt: other commands wait for it.
    pub(super) async fn by(self: &Arc<Self>, deadline: Instant) -> Result<(), StoreError> {
        if self.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        // Boxed: otherwise the future of every command would have room for it.
        let attempt = Box::pin(within(&*self.dialer.clock, deadline, self.attempt())).await;
        match attempt {
            // It says so to each command that needs memory, and serves the others.
            Some(Err(error)) if is_full(&error) => Ok(()),
            Some(attempt) => attempt,
            None => not_in_time()
                .map_err(|error| self.dialer.announced(self.dialer.named(error).into()).error),
        }
    }

    /// As [`by`](Self::by), however long it takes.
    pub(super) async fn attempt(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut failed = Arc::clone(&self.failed).lock_owned().await;
        if self.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some((at, error)) = &*failed
            && self.dialer.clock.now().saturating_since(*at) < stands(error)
        {
            return Err(error.clone());
        }
        let readiness = Arc::clone(self);
        let attempt = self.runtime.spawn(async move {
            let outcome = readiness.send().await;
            *failed = outcome.as_ref().err().map(|error| {
                tracing::debug!(%error, "the check of the server failed");
                (readiness.dialer.clock.now(), error.clone())
            });
            readiness.passed.fetch_or(outcome.is_ok(), Ordering::AcqRel);
            outcome
        });
        attempt.await.unwrap_or_else(|died| Err(no_runtime(&died)))
    }

    /// Runs the scripts, and subscribes, both at once. An error of the scripts is told first, as it
    /// concerns every command.
    async fn send(&self) -> Result<(), StoreError> {
        let Some(trial) = &self.trial else { return Ok(()) };
        // A task of its own, which ends with this future: to connect panics where there is no IO.
        let mut hearing = JoinSet::new();
        let (dialer, channel, limit) = (Arc::clone(&self.dialer), self.channel.clone(), self.limit);
        let hear = async move {
            // It disconnects soon; a missing right shows before a task waits, and so does another master at the
            // address, as both connections are there at one time.
            let subscribing = subscribe(&dialer, ("SUBSCRIBE", &channel), false, |_| Ok(()));
            let mut heard = subscribing.await?;
            if dialer.node.is_none() {
                return Ok(heard);
            }
            // Without this right leases would be lost while their slot moves.
            let asking = redis::cmd("ASKING");
            let asked = asking.query_async::<()>(&mut heard.connection);
            let clock = &*dialer.clock;
            match within(clock, clock.now() + limit, asked).await {
                // A service that moves no slots may not have it.
                Some(Err(error)) if error.code() == Some("NOPERM") => {
                    Err(dialer.named(classify_dial(&error)))
                }
                Some(_) => Ok(heard),
                None => not_in_time().map_err(|error| dialer.named(error)),
            }
        };
        hearing.spawn_on(hear, &self.runtime);
        self.run_scripts(trial).await?;
        match hearing.join_next().await {
            Some(heard) => heard.unwrap_or_else(|died| Err(no_runtime(&died))).map(drop),
            None => Ok(()),
        }
    }

    async fn run_scripts(&self, trial: &Trial) -> Result<(), StoreError> {
        let deadline = self.dialer.clock.now() + self.limit;
        let write = |to: &mut Cmd| {
            to.arg(&self.preamble.keys.all(&trial.name)).arg(&self.channel);
        };
        let call = ScriptCall::new(&scripts::PREFLIGHT, LockCommand::KEYS, &write);
        // Both EVAL and EVALSHA: the user may lack the right to one of them.
        let sent = async {
            let by_text = trial.connection.call(call.with_body(), deadline).await;
            by_text.map_err(|error| not_run("EVAL", error))?;
            let acks = self.acks.without_replicas();
            let called = trial.connection.call(call.waiting_for(acks), deadline).await;
            let called = called.map_err(|error| not_run("EVALSHA", error))?;
            refused(acks, &called).map_err(|error| self.dialer.named(error))
        };
        match sent.await {
            // The rights are checked before the slot; the keys are those of another node meanwhile.
            Err(error) if is_elsewhere(&error) => {}
            sent => drop(sent.map_err(StoreError::not_sent)?),
        }
        self.try_gathering(trial, deadline).await
    }

    /// Makes a shared call as on a node of a Cluster. A server that refuses it, as managed ones may, is
    /// sent none.
    async fn try_gathering(&self, trial: &Trial, deadline: Instant) -> Result<(), StoreError> {
        let Some(gathers) = &self.gathers else { return Ok(()) };
        let attempt = [LockCommand::of_nobody(&trial.name)];
        let write = |to: &mut Cmd| self.preamble.write_gathered(to, &attempt);
        match trial.connection.call(ScriptCall::new(&scripts::GATHERED, 0, &write), deadline).await
        {
            Ok(answer) => {
                let not_served = Value::Array(vec![Value::Int(0)]);
                gathers.store(answer.answer == not_served, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if error.is_answer() => Ok(()),
            Err(error) => Err(error.not_sent()),
        }
    }
}

/// Runs every kind of command once on the keys of a lock, with the text of the script or by its digest, as
/// the check of a store does. The caller keeps the deadline.
///
/// # Errors
///
/// [`StoreError`] when the server refuses, or what answers is not the script; none if it does not own the slot.
///
/// # Cancel safety
///
/// Dropping the future leaves nothing behind but, at worst, probe keys that live a second.
pub async fn preflight(
    connection: &mut MultiplexedConnection,
    config: &RedisConfig,
    (probe, channel): (&LockName, &str),
    has_body: bool,
) -> Result<(), StoreError> {
    let write = |to: &mut Cmd| {
        to.arg(&config.keys.all(probe)).arg(channel);
    };
    let call = ScriptCall::new(&scripts::PREFLIGHT, LockCommand::KEYS, &write);
    let call = if has_body { call.with_body() } else { call };
    let called = evaluate(connection, call, false, Duration::ZERO).await;
    match called.map_err(|error| not_run(call.verb(), in_namespace(&config.keys, classify(&error))))
    {
        // The slot has moved meanwhile; the rights are checked before the slot.
        Err(error) if is_elsewhere(&error) => Ok(()),
        called => ran(call.verb(), &called?.answer),
    }
}

/// Whether the answer is that of the script, and not of a proxy in its place.
fn ran(command: &str, answer: &Value) -> Result<(), StoreError> {
    if *answer == Value::BulkString(b"ok".into()) {
        return Ok(());
    }
    let what = format!(
        "the answer to {command} is not that of the script, but {}",
        without_words(&shown(answer))
    );
    let remedy = "let a proxy before the server pass EVAL and EVALSHA on, or go around it";
    Err(StoreError::new(StoreErrorKind::Corrupt, what, remedy))
}
