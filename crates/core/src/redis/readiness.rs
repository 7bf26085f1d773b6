use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::Cmd;
use tokio::{runtime::Handle, sync::Mutex};

use super::{
    classify::{no_runtime, not_in_time},
    command::{Command, Preamble},
    dial::Dialer,
    lane::{Call, Lane},
    scripts,
    subscriber::subscribe,
};
use crate::{
    clock::{Clock, Instant, within},
    store::StoreError,
    types::LockName,
};

/// The check of a server before the first command of a store: it runs every kind of command once.
///
/// Commands wait for it, each until its own deadline. One attempt is made at a time, on a task of
/// its own, which goes on when a command gives up. After it has passed, it is never made again.
#[derive(Debug)]
pub(super) struct Readiness {
    pub(super) dialer: Arc<Dialer>,
    pub(super) lane: Lane,
    pub(super) preamble: Arc<Preamble>,
    /// The lock whose keys are used.
    pub(super) probe: LockName,
    pub(super) channel: String,
    /// How long the scripts of an attempt may take, the connection included.
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
    /// Returns when the check has passed.
    ///
    /// # Errors
    ///
    /// [`StoreError`], always before the command was sent: that of the last attempt, or `Definite`
    /// when the deadline comes first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not end the attempt: other commands wait for it.
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

    async fn send(&self) -> Result<(), StoreError> {
        let deadline = self.clock.now() + self.limit;
        let write = |to: &mut Cmd| {
            self.preamble.write_keys(to, &self.probe);
            to.arg(&self.channel);
        };
        let call = Call::new(&scripts::PREFLIGHT, Command::KEYS, &write);
        // Both EVAL and EVALSHA: the user may lack the right to one of them.
        let sent = async {
            self.lane.call(call.with_body(), deadline).await?;
            self.lane.call(call, deadline).await
        };
        sent.await.map_err(StoreError::not_sent)?;
        // It disconnects at once; a missing right shows before a task waits.
        subscribe(&self.dialer, &*self.clock, &self.channel, |_| Ok(())).await.map(drop)
    }
}
