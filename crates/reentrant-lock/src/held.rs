use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::{
    Instant,
    lease::{HoldUpdate, Holds, HoldsError, LeaseState, LossReason},
    metric::{HoldEnd, ReleaseOutcome, ReleaseVia},
    store::{Hold, HoldAnswer},
};
use leasehold_watchdog::{HeldLease, TurnKeeper};
use tokio::select;

use crate::{
    cohort::{End, unheard},
    driver::GivenBack,
    engine::{Cleanup, Engine, Job, Task, TurnEnd},
    error::ReenterError,
    owner::Owner,
};

/// A lease with its holds; what all guards of the lease share.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) engine: Arc<Engine>,
    pub(crate) lease: Arc<HeldLease>,
    pub(crate) owner: Option<Owner>,
    pub(crate) holds: Mutex<Holds>,
}

impl Held {
    /// Counts another hold, the caller's to take off again; `None` when the last one is off.
    pub(crate) fn count_in(&self) -> Result<Option<HoldUpdate>, ReenterError> {
        match self.holds().enter(self.engine.change_number()) {
            Ok(update) => Ok(Some(update)),
            Err(HoldsError::Ended) => Ok(None),
            Err(HoldsError::TooMany) => Err(self.too_many()),
        }
    }

    /// Tells the server of an entry.
    ///
    /// An error that leaves the outcome open does not refuse, nor does an answer that has not come
    /// at `until`: the lease is believed until its deadline with or without this hold, and the
    /// reaper tells the absolute count later.
    pub(crate) async fn tell_entry(
        &self,
        update: HoldUpdate,
        until: Option<Instant>,
    ) -> Result<(), ReenterError> {
        match self.tell_until(update, until).await {
            Err(ReenterError::Store(error)) if error.kind().is_transient() => {
                // The answer may have been awaited for longer than the lease was believed.
                if let LeaseState::Lost(reason) = self.lease.state() {
                    return Err(self.lost(reason));
                }
                tracing::debug!(
                    lock = %self.lease.name(), lease = %self.lease.id(),
                    fence = %self.lease.fence(), %error,
                    "a re-entry could not be told; the lease stands, and the server is told later"
                );
                drop(self.hold_job(update));
                Ok(())
            }
            told => told,
        }
    }

    /// Tells the server the holds, and waits for its answer until some time at most.
    async fn tell_until(
        &self,
        update: HoldUpdate,
        until: Option<Instant>,
    ) -> Result<(), ReenterError> {
        let Engine { clock, timing, .. } = &*self.engine;
        // Most are willing to wait for longer than a command takes, and need no timer for that.
        let by_itself = clock.now() + timing.command_deadline(self.lease.ttl());
        let Some(until) = until.filter(|until| *until < by_itself) else {
            return self.tell(update).await;
        };
        select! {
            biased;
            told = self.tell(update) => told,
            () = clock.sleep_until(until) => {
                Err(ReenterError::Store(unheard().for_lock(self.lease.name())))
            }
        }
    }

    /// Takes a hold off; `None` means that it was the last one.
    pub(crate) fn leave(&self) -> Option<HoldUpdate> {
        self.holds().leave(self.engine.change_number())
    }

    /// Tells the server the holds.
    pub(crate) async fn tell(&self, update: HoldUpdate) -> Result<(), ReenterError> {
        let Self { engine, lease, .. } = self;
        if let LeaseState::Lost(reason) = lease.state() {
            return Err(self.lost(reason));
        }
        let sent_at = engine.clock.now();
        let answer = engine.store.hold(Hold {
            name: lease.name(),
            id: lease.turn().id(),
            fence: lease.turn().first(),
            update,
            ttl: lease.ttl(),
            deadline: sent_at + engine.timing.command_deadline(lease.ttl()),
        });
        let answer = engine.counted(answer.await).map_err(|error| error.for_lock(lease.name()))?;
        let state = match answer {
            HoldAnswer::Held { remaining } => lease.extended(sent_at, remaining),
            HoldAnswer::Gone => {
                let state = lease.lose(LossReason::Gone);
                engine.cohorts.lost(lease.turn(), LossReason::Gone, None);
                state
            }
        };
        match state {
            LeaseState::Lost(reason) => Err(self.lost(reason)),
            LeaseState::Held { .. } | LeaseState::Released => Ok(()),
        }
    }

    /// Ends the lease in memory; tells the state that it had until then, and what there is to do.
    pub(crate) fn end(&self, end: HoldEnd) -> (LeaseState, GivenBack<Cleanup>) {
        let prepare = |turn: &End| self.release_job(ReleaseVia::Explicit, Some(*turn));
        let ended = self.engine.cohorts.give_back(&self.lease, end, prepare);
        if let Some(owner) = &self.owner {
            owner.forget(&self.lease);
        }
        ended
    }

    /// The lease is over, and another task or the runtime itself does the rest.
    pub(crate) fn tell_settled(&self, via: ReleaseVia) {
        self.lease.metrics().release(ReleaseOutcome::Released, via);
    }

    /// What ends the lease on the server if nobody else does, and with it its turn.
    pub(crate) fn release_job(&self, via: ReleaseVia, turn: Option<End>) -> Cleanup {
        let cohorts = Arc::downgrade(&self.engine.cohorts);
        let turn = turn.map(|end| TurnEnd { cohorts, end });
        let (fence, closed_until) = (self.lease.turn().first(), self.lease.closed_until());
        let task = Task::Release { fence, via, turn, closed_until, copies: None };
        self.cleanup(task, self.expires())
    }

    /// What tells the server the holds if nobody else does, for as long as the lease is believed:
    /// a hold extends, and nothing may extend a lease that was lost.
    pub(crate) fn hold_job(&self, update: HoldUpdate) -> Option<Cleanup> {
        let LeaseState::Held { until } = self.lease.state() else { return None };
        let (fence, ttl) = (self.lease.turn().first(), self.lease.ttl());
        Some(self.cleanup(Task::Hold { fence, update, ttl }, until))
    }

    /// When the server has forgotten the lease by itself.
    pub(crate) fn expires(&self) -> Instant {
        self.engine.clock.now() + self.lease.ttl().get()
    }

    fn cleanup(&self, task: Task, expires: Instant) -> Cleanup {
        let (name, id) = (self.lease.name().clone(), self.lease.turn().id());
        let metrics = Arc::clone(self.lease.metrics());
        let timeout = self.engine.timing.command_deadline(self.lease.ttl());
        let job = Job { name, id, task, expires, timeout, metrics, waits: None };
        Cleanup::armed(&self.engine, job)
    }

    fn lost(&self, reason: LossReason) -> ReenterError {
        let lock = self.lease.name().clone();
        ReenterError::Lost { lock, fence: self.lease.fence(), reason }
    }

    fn too_many(&self) -> ReenterError {
        ReenterError::TooManyHolds { lock: self.lease.name().clone() }
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
