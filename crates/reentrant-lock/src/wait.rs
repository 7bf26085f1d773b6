use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, StoreError, StoreErrorKind, Ttl,
    lease::{Grant, Holds, LeaseState},
    metric::{AcquireOutcome, ClassMetrics},
    store::Inspection,
};
use leasehold_watchdog::HeldLease;
use tokio::select;

use crate::{
    engine::{Attempt, ClaimWatch, Engine, Tried},
    error::{AcquireError, HolderInfo, ReenterError, WaitTimeout},
    guard::Guard,
    held::Held,
    owner::Owner,
};

/// One call to acquire a lock, with its options checked.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: LockName,
    pub(crate) metrics: Arc<ClassMetrics>,
    pub(crate) patience: Patience,
    pub(crate) ttl: Ttl,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) renews: bool,
    pub(crate) owner: Option<Owner>,
}

/// For how long to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Not at all: a taken lock is an answer.
    Try,
    /// For a while.
    For(Duration),
    /// Without a limit.
    Forever,
}

impl Patience {
    /// What is left of it after waiting for some time.
    fn left(self, waited: Duration) -> Option<Duration> {
        match self {
            Self::Try => None,
            Self::For(wait) => wait.checked_sub(waited).filter(|left| !left.is_zero()),
            Self::Forever => Some(Duration::MAX),
        }
    }
}

impl Wait {
    /// Acquires, or gives up.
    pub(crate) async fn run(self) -> Result<Guard, AcquireError> {
        let mut tally = Tally::new(&self.metrics, self.patience);
        let outcome = self.wait(&mut tally).await;
        tally.finish(&outcome);
        outcome
    }

    async fn wait(&self, tally: &mut Tally) -> Result<Guard, AcquireError> {
        let started = self.engine.clock.now();
        let mut attempt = self.attempt();
        let mut pauses = self.engine.backoff();
        loop {
            if self.engine.closed.is_cancelled() {
                return Err(AcquireError::ShutDown { lock: self.name.clone() });
            }
            // Made before the look, so that a lease gained meanwhile is not missed.
            let gained = self.owner.as_ref().map(Owner::gained);
            if let Some(guard) = self.reenter().await? {
                tally.reentered = true;
                return Ok(guard);
            }
            let deadline = self.engine.clock.now() + self.engine.timing.command_deadline(self.ttl);
            let (free_in, error) = match attempt.try_once(deadline).await {
                Tried::Granted { grant, at, claim, uncertain } => {
                    let guard = self.take_over(grant, at, claim, uncertain);
                    // After the lease is watched: a shutdown from now on finds it there.
                    if self.engine.closed.is_cancelled() {
                        return Err(AcquireError::ShutDown { lock: self.name.clone() });
                    }
                    self.metrics.waited(at.saturating_since(started));
                    return Ok(guard);
                }
                Tried::Void if self.engine.watchdog.has_stopped() => {
                    return Err(runtime_stopped().for_lock(&self.name).into());
                }
                Tried::Void => {
                    attempt = self.attempt();
                    (Duration::ZERO, Some(too_late()))
                }
                Tried::Busy { remaining } => {
                    tally.finds_taken();
                    (remaining, None)
                }
                Tried::Failed(error) if error.kind().is_transient() => (Duration::MAX, Some(error)),
                Tried::Failed(error) => return Err(error.for_lock(&self.name).into()),
            };
            let now = self.engine.clock.now();
            let Some(left) = self.patience.left(now.saturating_since(started)) else {
                return Err(self.timeout(now.saturating_since(started), error).await);
            };
            tally.waits();
            let pause = pauses.next_pause().min(free_in.saturating_add(A_TICK)).min(left);
            select! {
                biased;
                () = self.engine.closed.cancelled() => {}
                () = or_never(gained) => {}
                () = self.engine.clock.sleep_until(now + pause) => self.metrics.wakeup(),
            }
        }
    }

    fn attempt(&self) -> Attempt {
        Attempt::new(&self.engine, &self.name, self.ttl, &self.metrics)
    }

    /// Enters the lease that the owner has already, if it has one.
    async fn reenter(&self) -> Result<Option<Guard>, AcquireError> {
        let Some(held) = self.owner.as_ref().and_then(|owner| owner.held(&self.name)) else {
            return Ok(None);
        };
        // A lease that its last guard is just releasing is nobody's to enter.
        if held.lease.state() == LeaseState::Released {
            return Ok(None);
        }
        match Guard::enter(&held).await {
            Ok(entered) => Ok(entered),
            Err(ReenterError::Lost { lock, fence, reason }) => {
                Err(AcquireError::Lost { lock, fence, reason })
            }
            Err(ReenterError::TooManyHolds { lock }) => Err(AcquireError::TooManyHolds { lock }),
            Err(ReenterError::Store(error)) => Err(error.into()),
        }
    }

    /// Makes a grant a lease under watch. No await from here to the guard: it cannot leak.
    fn take_over(&self, grant: Grant, at: Instant, claim: ClaimWatch, uncertain: bool) -> Guard {
        let Self { engine, .. } = self;
        let (clock, metrics) = (Arc::clone(&engine.clock), Arc::clone(&self.metrics));
        let lease = HeldLease::new(grant, at, self.max_hold, clock, metrics);
        let watch = claim.become_lease(&lease, self.renews);
        tracing::debug!(lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), "acquired");
        let held = Arc::new(Held {
            engine: Arc::clone(engine),
            lease,
            owner: self.owner.clone(),
            watch,
            uncertain,
            holds: Mutex::new(Holds::first()),
        });
        if let Some(owner) = &self.owner {
            owner.gain(&held);
        }
        Guard::new(held)
    }

    async fn timeout(&self, waited: Duration, last_error: Option<StoreError>) -> AcquireError {
        let holder = match (self.patience, &last_error) {
            (Patience::Try, _) | (_, Some(_)) => None,
            _ => self.holder().await,
        };
        let lock = self.name.clone();
        AcquireError::Timeout(Box::new(WaitTimeout { lock, waited, holder, last_error }))
    }

    async fn holder(&self) -> Option<HolderInfo> {
        let deadline = self.engine.clock.now() + LONGEST_LOOK;
        match self.engine.store.inspect(&self.name, deadline).await {
            Ok(Inspection::Held(record)) => Some(HolderInfo {
                this_runtime: record.id.runtime() == self.engine.runtime_id(),
                label: record.label,
                lease: record.id,
                fence: record.fence,
                held_for: record.held_for,
            }),
            Ok(Inspection::Free { .. }) | Err(_) => None,
        }
    }
}

async fn or_never(future: Option<impl Future<Output = ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Nobody is left who would renew a lease.
fn runtime_stopped() -> StoreError {
    StoreError::new(
        StoreErrorKind::Config,
        "the tokio runtime that the lock runtime lives on has stopped",
        "make it on a tokio runtime that lives as long as the locks, or use own_thread()",
    )
}

/// A grant whose answer was taken too late; it is withdrawn.
fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "an answer was taken too late to be believed",
        "poll the acquiring future in time: look for blocking code on its executor",
    )
}

/// Redis tells times to live in whole milliseconds.
const A_TICK: Duration = Duration::from_millis(1);
/// A timeout is not held up for long by finding out who holds the lock.
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// Counts how a call went, also when its future is dropped.
#[derive(Debug)]
struct Tally {
    metrics: Arc<ClassMetrics>,
    patience: Patience,
    contended: bool,
    waiting: bool,
    reentered: bool,
    outcome: AcquireOutcome,
}

impl Tally {
    fn new(metrics: &Arc<ClassMetrics>, patience: Patience) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            patience,
            contended: false,
            waiting: false,
            reentered: false,
            outcome: AcquireOutcome::Cancelled,
        }
    }

    fn finds_taken(&mut self) {
        if !self.contended {
            self.contended = true;
            self.metrics.contended();
        }
    }

    fn waits(&mut self) {
        if !self.waiting {
            self.waiting = true;
            self.metrics.waiters(1);
        }
    }

    fn finish(mut self, outcome: &Result<Guard, AcquireError>) {
        self.outcome = match outcome {
            Ok(_) if self.reentered => AcquireOutcome::Reentered,
            Ok(_) => AcquireOutcome::Acquired,
            Err(AcquireError::Timeout(timeout)) => match self.patience {
                Patience::Try if timeout.last_error.is_some() => AcquireOutcome::Error,
                Patience::Try => AcquireOutcome::Busy,
                Patience::For(_) | Patience::Forever => AcquireOutcome::Timeout,
            },
            Err(AcquireError::Lost { .. }) => AcquireOutcome::Lost,
            Err(_) => AcquireOutcome::Error,
        };
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if self.waiting {
            self.metrics.waiters(-1);
        }
        self.metrics.acquire(self.outcome);
    }
}
