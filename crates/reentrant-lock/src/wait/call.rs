use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, StoreError, StoreErrorKind,
    lease::{Holds, LeaseState},
};
use leasehold_watchdog::HeldLease;

use crate::{
    caller::{Caller, Owned},
    cohort::Cohort,
    driver::{Found, Wish},
    endurance::Endurance,
    engine::Engine,
    error::{AcquireError, ReenterError},
    guard::Guard,
    held::Held,
    owner::Owner,
    suspicion::Suspicion,
};

use super::{Tally, in_line::Turned, patience::Patience};

/// One call to acquire a lock, with its options checked.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: LockName,
    pub(crate) wish: Wish,
    pub(crate) patience: Patience,
    pub(crate) outage_patience: Duration,
    pub(crate) owner: Option<Owner>,
}

impl Wait {
    /// Acquires, or gives up.
    ///
    /// Not an `async fn`, which would keep itself twice: many tasks may wait for long.
    #[expect(
        clippy::manual_async_fn,
        reason = "it would keep itself twice, in every task that waits"
    )]
    pub(crate) fn run(mut self) -> impl Future<Output = Result<Guard, AcquireError>> + Send {
        async move {
            let started = self.engine.clock.now();
            let tries = matches!(self.patience, Patience::Try);
            let mut tally = Tally::new(&self.wish.metrics, tries, started);
            let mut owned = Owned::Given;
            if self.owner.is_none() {
                self.owner = Owner::of_scope(self.engine.runtime_id());
                owned = if self.owner.is_some() { Owned::Scoped } else { Owned::Fresh };
            }
            self.wish.caller = Some(Caller::here(owned));
            let mut suspicion = Suspicion::default();
            let mut outcome = {
                let mut wait = pin!(self.wait(&mut tally, started));
                let waited = poll_fn(|cx| {
                    let outcome = wait.as_mut().poll(cx);
                    if outcome.is_pending() {
                        suspicion.look(&self.engine.cohorts, &self.name, &self.wish, cx);
                    }
                    outcome
                });
                waited.await
            };
            if let Err(error) = &mut outcome {
                suspicion.explain(error);
            }
            tally.finish(&outcome);
            outcome
        }
    }

    #[expect(clippy::manual_async_fn, reason = "as above")]
    fn wait<'a>(
        &'a self,
        tally: &'a mut Tally,
        started: Instant,
    ) -> impl Future<Output = Result<Guard, AcquireError>> + Send + 'a {
        async move {
            let (mut ends, mut comes_back) = (self.patience.ends(started), false);
            let mut endurance = Endurance::new(self.outage_patience, started);
            loop {
                // A task that is polled seldom may come here again and again, and always too late.
                if std::mem::replace(&mut comes_back, true) && self.is_over(ends) {
                    return Err(Box::pin(self.too_late(started)).await);
                }
                let closed = self.engine.has_stopped() || self.engine.closed.is_cancelled();
                // Made before the look, so that a lease gained meanwhile is not missed.
                let holds = self.owner.as_ref().map(|owner| self.holds_by(owner, owner.gained()));
                let mut held = self.held();
                if closed {
                    // A drain refuses new leases; one that is still held may be entered.
                    held = held.filter(|held| held.lease.state().is_held());
                    if held.is_none() {
                        return Err(self.closed());
                    }
                }
                if let Some(held) = held
                    && let Some(guard) = Box::pin(reenter(held, ends)).await?
                {
                    if let Some(hold) = self.wish.hold_at_least
                        && let LeaseState::Lost(reason) =
                            guard.close_if_held(self.engine.clock.now() + hold)
                    {
                        let (lock, fence) = (self.name.clone(), guard.fence());
                        return Err(AcquireError::Lost { lock, fence, reason });
                    }
                    tally.reentered = true;
                    return Ok(guard);
                }
                let times = (started, ends, &mut endurance);
                match self.in_line(holds, times, tally).await {
                    Turned::Closed => return Err(self.closed()),
                    Turned::Settles => {
                        // Its own command included, that takes no longer than one command may.
                        let time = self.engine.timing.command_deadline(self.wish.ttl);
                        let until = *ends.get_or_insert(started + time);
                        if !Box::pin(self.settled(until)).await {
                            return Err(self.unheard(started));
                        }
                    }
                    Turned::Taken => {
                        if self.engine.outages().outage().is_some() && !self.is_held_here() {
                            // Others ask for it already, and are not answered.
                            return Err(self.engine.unavailable(&self.name, started, None));
                        }
                        tally.finds_taken();
                        return Err(Box::pin(self.timeout(started, None)).await);
                    }
                    Turned::Found(Found::Lease(lease, was_taken)) => {
                        if was_taken {
                            tally.finds_taken();
                        }
                        return self.take_over(lease, started);
                    }
                    Turned::Found(Found::Failed(error)) => {
                        return Err(error.for_lock(&self.name).into());
                    }
                    Turned::Found(Found::Dropped) | Turned::Holds => {}
                    Turned::Failed(error) => {
                        return Err(self.engine.failed(&self.name, started, error));
                    }
                    Turned::Busy(in_line) => {
                        tally.finds_taken();
                        return Err(Box::pin(self.timeout(started, Some(in_line))).await);
                    }
                    Turned::TimeOver(_) if self.wish.tries => return Err(self.unheard(started)),
                    Turned::TimeOver(in_line) => {
                        if self.knows(Cohort::is_known_taken) {
                            tally.finds_taken();
                        }
                        return Err(Box::pin(self.timeout(started, Some(in_line))).await);
                    }
                    Turned::Silent(error) => return Err(error),
                }
            }
        }
    }

    /// Waits until a release of this runtime is over, at most until some time; whether it is.
    async fn settled(&self, until: Instant) -> bool {
        poll_fn(|cx| self.engine.cohorts.settled(&self.name, until, cx.waker())).await
    }

    /// Nobody is let in any more.
    fn closed(&self) -> AcquireError {
        if self.engine.closed.is_cancelled() {
            return self.shut_down();
        }
        runtime_stopped().for_lock(&self.name).into()
    }

    /// The lease that the owner has already, if it has one.
    fn held(&self) -> Option<Arc<Held>> {
        let held = self.owner.as_ref().and_then(|owner| owner.held(&self.name));
        // A lease that its last guard is just releasing is nobody's to enter.
        held.filter(|held| held.lease.state() != LeaseState::Released)
    }

    /// Makes a guard of a lease.
    fn take_over(&self, lease: Arc<HeldLease>, started: Instant) -> Result<Guard, AcquireError> {
        let Self { engine, owner, .. } = self;
        tracing::debug!(lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), "acquired");
        self.wish.metrics.waited(lease.since().saturating_since(started));
        let holds = Mutex::new(Holds::first());
        let held =
            Arc::new(Held { engine: Arc::clone(engine), lease, owner: owner.clone(), holds });
        if let Some(owner) = owner {
            owner.gain(&held);
        }
        let guard = Guard::new(held);
        // After the lease is watched: a shutdown from now on finds it there.
        if engine.closed.is_cancelled() {
            return Err(self.shut_down());
        }
        Ok(guard)
    }

    /// Nobody gets a new lease any more.
    fn shut_down(&self) -> AcquireError {
        AcquireError::ShutDown { lock: self.name.clone(), draining: self.engine.is_draining() }
    }
}

/// Enters the lease that the owner has already.
async fn reenter(held: Arc<Held>, until: Option<Instant>) -> Result<Option<Guard>, AcquireError> {
    match Guard::enter(&held, until).await {
        Ok(entered) => Ok(entered),
        Err(ReenterError::Lost { lock, fence, reason }) => {
            Err(AcquireError::Lost { lock, fence, reason })
        }
        Err(ReenterError::TooManyHolds { lock }) => Err(AcquireError::TooManyHolds { lock }),
        Err(ReenterError::Store(error)) => Err(error.into()),
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
