use std::{mem, sync::Arc};

use leasehold_core::{
    Instant, Mutex, StoreError, StoreErrorKind,
    lease::{Holds, LeaseState},
    metric::AcquireOutcome,
};
use leasehold_watchdog::HeldLease;
use tokio::{select, task::unconstrained};

use crate::{
    durations::MOMENT,
    error::{AcquireError, LeaseLost, ReenterError},
    guard::Guard,
    owner::{Owner, SharedLease},
    queue::{NameState, NoLease},
};

use super::{
    end::{failed, unavailable},
    line::{AcquireCall, InLine, WaitLimit},
    outage_patience::OutagePatience,
    waiting::{AcquireTally, Contention},
};

impl AcquireCall {
    /// Acquires, or gives up.
    pub(crate) async fn run(&mut self) -> Result<Guard, AcquireError> {
        if !self.engine.is_here(self.started) {
            return Err(self.forked());
        }
        let metrics = Arc::clone(&self.metrics);
        let mut tally = AcquireTally {
            metrics: &metrics,
            tries: matches!(self.limit, WaitLimit::Try),
            started: self.started,
            found: Contention::Free,
            behind: None,
            reentered: false,
            suspicion: None,
            outcome: AcquireOutcome::Cancelled,
        };
        let mut outcome = self.wait(&mut tally).await;
        if tally.found == Contention::Kept {
            let now = self.engine.clock.now();
            let latest = self.started + self.engine.timing.command_deadline(self.terms.ttl);
            let ends = now.min(latest) + MOMENT;
            // Unless the process was away for so long that this is over.
            if now < ends {
                // The lock may be idle, and is given up when somebody waits for it.
                (self.recall_ends, self.tries) = (Some(ends), false);
                outcome = self.wait(&mut tally).await;
            }
        }
        if let Err(error) = &mut outcome {
            let engine = &self.engine;
            if engine.is_forked() {
                // The call is counted where it goes on.
                mem::forget(tally);
                return outcome;
            }
            tally.suspicion.iter().for_each(|suspicion| suspicion.explain(engine, error));
        }
        tally.finish(&outcome);
        outcome
    }

    /// Enters the lease that the owner has, or stands in line until the task gets one or none.
    async fn wait(&self, tally: &mut AcquireTally<'_>) -> Result<Guard, AcquireError> {
        let (mut ends, mut looks_from) = (self.recall_ends, self.started);
        if let WaitLimit::For(wait) = self.limit
            && !wait.is_zero()
        {
            ends = ends.or(Some(self.started + wait));
        }
        let mut patience = OutagePatience::new(self.outage_patience, self.started);
        loop {
            // Made before the look, so that a lease gained meanwhile is not missed.
            let gained = self.owner.as_ref().map(Owner::gained);
            if let Some(guard) = self.enter_held(ends).await? {
                tally.reentered = true;
                return Ok(guard);
            }
            let (mut line, times) = (None, (looks_from, ends));
            // A task that has used up its budget of tokio still takes what it was offered, and sees
            // that its time is over.
            let standing = self.in_line(&mut line, gained, times, &mut patience, tally);
            match unconstrained(standing).await {
                Ok(lease) => {
                    if lease.was_held() {
                        tally.finds_held();
                    }
                    return self.take_over(lease.count());
                }
                Err(NoLease::Dismissed) => drop(line),
                Err(NoLease::Releasing) => self.until_released(&mut ends).await?,
                Err(why) => return Err(Box::pin(self.give_up(why, line, tally)).await),
            }
            // A task that is polled seldom may come here again and again, and always too late.
            looks_from = self.engine.clock.now();
            if ends.is_some_and(|ends| ends <= looks_from) {
                return Err(Box::pin(self.too_late()).await);
            }
            if !self.engine.is_here(looks_from) {
                return Err(self.forked());
            }
        }
    }

    /// Enters the lease that the owner has already, if it has one.
    async fn enter_held(&self, until: Option<Instant>) -> Result<Option<Guard>, AcquireError> {
        let Self { engine, name, .. } = self;
        let closed = engine.has_stopped() || engine.ending.refuses();
        let held = self.owner.as_ref().and_then(|owner| owner.held(name));
        let held = held.filter(|held| match held.lease.state() {
            // Also while a drain refuses new leases.
            LeaseState::Held { .. } => true,
            LeaseState::Lost(_) => !closed,
            // Its last guard is just releasing it.
            LeaseState::Released => false,
        });
        let Some(held) = held else {
            return if closed { Err(self.closed()) } else { Ok(None) };
        };
        let guard = match Guard::enter(engine, &held, until).await {
            Ok(Some(guard)) => guard,
            Ok(None) => return Ok(None),
            Err(ReenterError::Lost(lost)) => return Err(AcquireError::Lost(lost)),
            Err(ReenterError::TooManyHolds { lock }) => {
                return Err(AcquireError::TooManyHolds { lock });
            }
            Err(ReenterError::Store(error)) => return Err(error.into()),
        };
        if let Some(hold) = self.min_hold
            && let LeaseState::Lost(reason) = held.lease.close_if_held(engine.clock.now() + hold)
        {
            return Err(AcquireError::Lost(LeaseLost::new(&held.lease, reason)));
        }
        Ok(Some(guard))
    }

    /// Waits until no release or withdrawal of this process is on its way. The wait and the command
    /// after it take at most one command timeout together.
    async fn until_released(&self, ends: &mut Option<Instant>) -> Result<(), AcquireError> {
        let Self { engine, name, .. } = self;
        let time = engine.timing.command_deadline(self.terms.ttl);
        let until = *ends.get_or_insert(self.started + time);
        loop {
            let awaited = engine.with(name, |entry, _| entry.state.awaits_release());
            let over = match awaited.unwrap_or(Ok(None)) {
                Ok(Some(over)) => over,
                Ok(None) => return Ok(()),
                Err(error) => return Err(failed(engine, name, self.started, error)),
            };
            select! {
                biased;
                _ = engine.until_forked() => return Err(self.forked()),
                () = over => {}
                () = engine.clock.sleep_until(until) => return Err(self.unheard()),
            }
        }
    }

    /// The error of a call that gets no lease.
    async fn give_up(
        &self,
        why: NoLease,
        line: Option<InLine<'_>>,
        tally: &mut AcquireTally<'_>,
    ) -> AcquireError {
        let Self { engine, name, .. } = self;
        match why {
            NoLease::Closed => return self.closed(),
            NoLease::Failed(error) => return failed(engine, name, self.started, error),
            NoLease::Unavailable => {
                // While the task stands in line: to leave it may count as a failure.
                let failing = self.failing().filter(|failing| failing.failed > 0);
                return unavailable(engine, name, self.started, failing);
            }
            NoLease::TimedOut if self.tries => return self.unheard(),
            NoLease::Busy if line.is_none() => {
                if let Some(error) = self.asked_in_vain() {
                    return error;
                }
                tally.finds_held();
            }
            NoLease::Kept => {
                tally.finds_held();
                tally.found = Contention::Kept;
            }
            NoLease::TimedOut if !self.knows(NameState::is_known_held) => {}
            NoLease::TimedOut | NoLease::Busy | NoLease::Releasing | NoLease::Dismissed => {
                tally.finds_held();
            }
        }
        self.timeout(line).await
    }

    /// The runtime gives no new leases.
    fn closed(&self) -> AcquireError {
        if self.engine.is_forked() {
            return self.forked();
        }
        if self.engine.ending.refuses() {
            let (lock, draining) = (self.name.clone(), self.engine.ending.is_draining());
            return AcquireError::ShutDown { lock, draining };
        }
        // No task is left that would renew a lease.
        let stopped = StoreError::new(
            StoreErrorKind::Config,
            "the tokio runtime that the lock runtime lives on has stopped",
            "make it on a tokio runtime that lives as long as the locks, or use own_thread()",
        );
        stopped.for_lock(&self.name).into()
    }

    /// The runtime was made in another process.
    fn forked(&self) -> AcquireError {
        self.engine.outages().origin().error().for_lock(&self.name).into()
    }

    fn take_over(&self, lease: Arc<HeldLease>) -> Result<Guard, AcquireError> {
        let Self { engine, owner, .. } = self;
        tracing::debug!(lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), "acquired");
        self.metrics.waited(lease.since().saturating_since(self.started));
        let holds = Mutex::new(Holds::first());
        let held = Arc::new(SharedLease { lease, owner: owner.clone(), holds });
        if let Some(owner) = owner {
            owner.gain(&held);
        }
        let guard = Guard::new(Arc::clone(engine), held);
        // After the lease is watched: a shutdown from now on finds it there.
        if engine.ending.refuses() {
            return Err(self.closed());
        }
        Ok(guard)
    }
}
