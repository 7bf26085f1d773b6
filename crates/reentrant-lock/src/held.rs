use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::{
    Instant,
    lease::{HoldUpdate, Holds, HoldsError, LeaseState, LossReason},
    metric::{HoldEnd, ReleaseVia},
    store::{Hold, HoldAnswer},
};
use leasehold_watchdog::{HeldLease, Watch};

use crate::{
    engine::{Cleanup, Engine, Job, Task},
    error::ReenterError,
    owner::Owner,
};

/// A lease with its holds; what all guards of the lease share.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) engine: Arc<Engine>,
    pub(crate) lease: Arc<HeldLease>,
    pub(crate) owner: Option<Owner>,
    pub(crate) watch: Watch,
    /// A copy of the acquire may still be executed, after the lease is over.
    pub(crate) uncertain: bool,
    pub(crate) holds: Mutex<Holds>,
}

impl Held {
    /// Counts another hold, the caller's to take off again; `None` when the last one is off.
    pub(crate) fn count_in(&self) -> Result<Option<HoldUpdate>, ReenterError> {
        match self.holds().enter() {
            Ok(update) => Ok(Some(update)),
            Err(HoldsError::Ended) => Ok(None),
            Err(HoldsError::TooMany) => Err(self.too_many()),
        }
    }

    /// Tells the server of an entry.
    ///
    /// An error that leaves the outcome open does not refuse: the lease is believed until its
    /// deadline with or without this hold, and the reaper tells the absolute count later.
    pub(crate) async fn tell_entry(&self, update: HoldUpdate) -> Result<(), ReenterError> {
        match self.tell(update).await {
            Err(ReenterError::Store(error)) if error.kind().is_transient() => {
                tracing::warn!(%error, "a re-entry could not be told; the lease stands");
                drop(self.hold_job(update));
                Ok(())
            }
            told => told,
        }
    }

    /// Takes a hold off; `None` means that it was the last one.
    pub(crate) fn leave(&self) -> Option<HoldUpdate> {
        self.holds().leave()
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
            id: lease.id(),
            fence: lease.fence(),
            update,
            ttl: lease.ttl(),
            deadline: sent_at + engine.timing.command_deadline(lease.ttl()),
        });
        let answer = engine.counted(answer.await).map_err(|error| error.for_lock(lease.name()))?;
        let state = match answer {
            HoldAnswer::Held { remaining } => lease.extended(sent_at, remaining),
            HoldAnswer::Gone => lease.lose(LossReason::Gone),
        };
        match state {
            LeaseState::Lost(reason) => Err(self.lost(reason)),
            LeaseState::Held { .. } | LeaseState::Released => Ok(()),
        }
    }

    /// Ends the lease in memory; the answer is the state that it had until then.
    pub(crate) fn end(&self, end: HoldEnd) -> LeaseState {
        let before = self.lease.release(end);
        self.engine.watchdog.forget(self.watch);
        if let Some(owner) = &self.owner {
            owner.forget(&self.lease);
        }
        before
    }

    /// What ends the lease on the server if nobody else does.
    pub(crate) fn release_job(&self, via: ReleaseVia) -> Cleanup {
        let task = Task::Release { fence: self.lease.fence(), via };
        self.cleanup(task, self.expires())
    }

    /// What tells the server the holds if nobody else does, for as long as the lease is believed:
    /// a hold extends, and nothing may extend a lease that was lost.
    pub(crate) fn hold_job(&self, update: HoldUpdate) -> Option<Cleanup> {
        let LeaseState::Held { until } = self.lease.state() else { return None };
        let (fence, ttl) = (self.lease.fence(), self.lease.ttl());
        Some(self.cleanup(Task::Hold { fence, update, ttl }, until))
    }

    /// What keeps a late copy of the acquire from coming back as a lease that nobody knows of.
    pub(crate) fn withdraw_job(&self) -> Option<Cleanup> {
        self.uncertain.then(|| self.cleanup(Task::Withdraw, self.expires()))
    }

    /// When the server has forgotten the lease by itself.
    pub(crate) fn expires(&self) -> Instant {
        self.engine.clock.now() + self.lease.ttl().get()
    }

    fn cleanup(&self, task: Task, expires: Instant) -> Cleanup {
        let (name, id) = (self.lease.name().clone(), self.lease.id());
        let metrics = Arc::clone(self.lease.metrics());
        let timeout = self.engine.timing.command_deadline(self.lease.ttl());
        let job = Job { name, id, task, expires, timeout, metrics };
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
