use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, LockName, LockStore, StoreError, Ttl,
    lease::HoldUpdate,
    metric::{ClassMetrics, ReleaseOutcome, ReleaseVia},
    store::{Hold, HoldAnswer, Release, ReleaseAnswer, Withdraw},
};

use crate::{
    closing::rest,
    cohort::{Answer, End},
    driver::Cohorts,
};

/// Something to be set right on the server that nobody waits for.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) name: LockName,
    pub(crate) id: AcquisitionId,
    pub(crate) task: Task,
    /// When the server forgets it by itself, so that there is nothing left to do.
    pub(crate) expires: Instant,
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
    pub(crate) metrics: Arc<ClassMetrics>,
}

/// What is to be set right.
#[derive(Debug)]
pub(crate) enum Task {
    /// End a lease, and with it perhaps a turn that somebody waits for the end of.
    Release {
        fence: FenceToken,
        via: ReleaseVia,
        turn: Option<TurnEnd>,
        /// Until when the lock stays closed nevertheless.
        closed_until: Option<Instant>,
    },
    /// Take an acquisition back, whatever came of it.
    Withdraw,
    /// Tell the holds of a lease that goes on.
    Hold { fence: FenceToken, update: HoldUpdate, ttl: Ttl },
}

/// The end of a turn that a cohort waits for.
#[derive(Debug, Clone)]
pub(crate) struct TurnEnd {
    pub(crate) cohorts: Weak<Cohorts>,
    pub(crate) end: End,
}

impl TurnEnd {
    /// The turn is over on the server, or nobody tries to tell it any more.
    pub(crate) fn settle(&self, name: &LockName, outcome: ReleaseOutcome) {
        let Some(cohorts) = self.cohorts.upgrade() else { return };
        if outcome == ReleaseOutcome::Unconfirmed {
            return cohorts.turn_given_up(name, &self.end);
        }
        let sent_at = cohorts.shared.clock.now();
        cohorts.turn_ended(
            name,
            &self.end,
            Answer { sent_at, result: Ok(ReleaseAnswer::Released) },
        );
    }
}

impl Job {
    /// Tries once; `Ok` when the server has answered.
    pub(crate) async fn attempt(
        &self,
        store: &dyn LockStore,
        now: Instant,
        deadline: Instant,
    ) -> Result<ReleaseOutcome, StoreError> {
        let (name, id) = (&self.name, self.id);
        let ended = match self.task {
            Task::Release { fence, closed_until, .. } => {
                let keep = rest(closed_until, now);
                let command = Release { name, id, fence, keep, next: None, deadline };
                match store.release(command).await? {
                    ReleaseAnswer::Kept { .. } => return Ok(ReleaseOutcome::Kept),
                    answer => answer != ReleaseAnswer::Gone,
                }
            }
            Task::Withdraw => store.withdraw(Withdraw { name, id, deadline }).await?.ended_grant,
            Task::Hold { fence, update, ttl } => {
                let command = Hold { name, id, fence, update, ttl, deadline };
                store.hold(command).await? != HoldAnswer::Gone
            }
        };
        Ok(if ended { ReleaseOutcome::Released } else { ReleaseOutcome::Gone })
    }

    /// The job is over, one way or the other.
    pub(crate) fn done(&self, outcome: ReleaseOutcome) {
        self.settle_turn(outcome);
        let via = match &self.task {
            Task::Release { via, .. } => *via,
            Task::Withdraw => ReleaseVia::Withdraw,
            Task::Hold { .. } => return,
        };
        self.metrics.release(outcome, via);
        if outcome == ReleaseOutcome::Unconfirmed {
            tracing::warn!(
                lock = %self.name, lease = %self.id,
                "the server could not be told of a release; the lease ends with its ttl"
            );
        }
    }

    /// Tells the cohort that waits for the end of the turn, if there is one.
    pub(super) fn settle_turn(&self, outcome: ReleaseOutcome) {
        if let Task::Release { turn: Some(turn), .. } = &self.task {
            turn.settle(&self.name, outcome);
        }
    }

    /// The lock that stays closed until this job is done, if any.
    pub(crate) fn keeps_closed(&self) -> Option<LockName> {
        match self.task {
            Task::Release { .. } | Task::Withdraw => Some(self.name.clone()),
            Task::Hold { .. } => None,
        }
    }
}
