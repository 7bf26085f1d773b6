use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::Cmd;
use tokio::{runtime::Handle, select};

use super::{
    classify::{no_runtime, not_in_time},
    lane::{Call, Lane},
    scripts,
    subscriptions::Subscriptions,
};
use crate::{
    clock::{Clock, Instant},
    store::{StoreError, StoreErrorKind},
};

/// The check of a server before the first command of a store: it runs every kind of command once.
///
/// Commands wait for it, each until its own deadline. One attempt is made at a time, on a task of
/// its own, which goes on when a command gives up. After it has passed, it is never made again.
#[derive(Clone)]
pub(super) struct Readiness(Arc<Inner>);

struct Inner {
    check: Check,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    passed: Arc<AtomicBool>,
    attempt: Arc<tokio::sync::Mutex<()>>,
    failed: Mutex<Option<(Instant, StoreError)>>,
}

/// What the check needs.
pub(super) struct Check {
    pub(super) endpoint: Arc<str>,
    pub(super) lane: Lane,
    pub(super) subscriptions: Arc<Subscriptions>,
    pub(super) keys: [String; 4],
    pub(super) channel: String,
    /// How long the scripts of an attempt may take, the connection included.
    pub(super) limit: Duration,
}

/// For how long the error of a failed attempt is returned to all callers.
fn stands(failed: &StoreError) -> Duration {
    // An outage may be over at any moment; a refusal lasts until an operator lifts it.
    Duration::from_millis(if failed.kind().is_transient() { 50 } else { 1000 })
}

impl Readiness {
    /// Sets `passed` once the check has passed.
    pub(super) fn new(
        check: Check,
        passed: Arc<AtomicBool>,
        clock: Arc<dyn Clock>,
        runtime: Handle,
    ) -> Self {
        let (attempt, failed) = (Arc::default(), Mutex::default());
        Self(Arc::new(Inner { check, clock, runtime, passed, attempt, failed }))
    }

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
    pub(super) async fn by(&self, deadline: Instant) -> Result<(), StoreError> {
        Box::pin(self.wait(deadline)).await
    }

    /// Makes an attempt, even right after a failure.
    pub(super) async fn now(&self) -> Result<(), StoreError> {
        let outcome = self.0.check.run(&*self.0.clock).await;
        self.note(&outcome);
        outcome
    }

    async fn wait(&self, deadline: Instant) -> Result<(), StoreError> {
        select! {
            biased;
            outcome = self.attempt() => outcome,
            () = self.0.clock.sleep_until(deadline) => not_in_time()
                .map_err(|error| error.from_endpoint(self.0.check.endpoint.to_string())),
        }
    }

    async fn attempt(&self) -> Result<(), StoreError> {
        let turn = Arc::clone(&self.0.attempt).lock_owned().await;
        if self.0.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.recent_failure().map_or(Ok(()), Err)?;
        let readiness = self.clone();
        let attempt = self.0.runtime.spawn(async move {
            let outcome = readiness.now().await;
            drop(turn);
            outcome
        });
        attempt.await.unwrap_or_else(|died| Err(no_runtime(&died)))
    }

    fn note(&self, outcome: &Result<(), StoreError>) {
        let failed = outcome.as_ref().err().cloned();
        if let Some(error) = &failed {
            tracing::debug!(%error, "the check of the server failed");
        }
        *self.failed() = failed.map(|error| (self.0.clock.now(), error));
        self.0.passed.fetch_or(outcome.is_ok(), Ordering::AcqRel);
    }

    fn recent_failure(&self) -> Option<StoreError> {
        let now = self.0.clock.now();
        let failed = self.failed();
        let (at, error) = failed.as_ref()?;
        (now.saturating_since(*at) < stands(error)).then(|| error.clone())
    }

    fn failed(&self) -> MutexGuard<'_, Option<(Instant, StoreError)>> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Check {
    async fn run(&self, clock: &dyn Clock) -> Result<(), StoreError> {
        let deadline = clock.now() + self.limit;
        let write = |to: &mut Cmd| {
            to.arg(&self.keys).arg(&self.channel);
        };
        let call = Call::new(&scripts::PREFLIGHT, 4, &write);
        // Both EVAL and EVALSHA: the user may lack the right to one of them.
        let sent = async {
            self.lane.call(call.with_body(), deadline).await?;
            self.lane.call(call, deadline).await
        };
        sent.await.map_err(not_of_a_command)?;
        self.subscriptions.check(&self.channel).await
    }
}

/// The probe may have run, but the command that waits for it was not sent.
fn not_of_a_command(error: StoreError) -> StoreError {
    if error.kind() == StoreErrorKind::Indeterminate {
        return error.not_sent();
    }
    error
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").field("passed", &self.0.passed).finish_non_exhaustive()
    }
}
