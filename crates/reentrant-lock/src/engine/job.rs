use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Clock, FenceToken, Instant, LockName, LockStore, StoreError, Ttl,
    lease::{HoldUpdate, LossReason},
    metric::{ClassMetrics, ReleaseOutcome, ReleaseVia},
    store::{Hold, HoldAnswer, Release, ReleaseAnswer, Withdraw},
};
use tokio::sync::oneshot;

use crate::{
    closing::{Copies, Gone, rest},
    cohort::{Answer, End},
    driver::Cohorts,
};

/// Something to be set right on the server, whether or not somebody waits for it.
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
    /// Who waits to hear the server's answer.
    pub(crate) waits: Option<oneshot::Sender<Told>>,
}

/// What the server answered to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was done, by this attempt or by an earlier one.
    Done,
    /// The lease has ended, and the lock stays closed for this long.
    Kept { remaining: Duration },
    /// The lease had ended before.
    Gone,
    /// The lease was held to the end and is over: by a copy of its release, or with its time.
    Over,
}

impl Told {
    fn outcome(self) -> ReleaseOutcome {
        match self {
            Self::Done => ReleaseOutcome::Released,
            Self::Kept { .. } => ReleaseOutcome::Kept,
            Self::Gone | Self::Over => ReleaseOutcome::Gone,
        }
    }
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
        /// Of a lease that was believed when it was given back: what may have ended it.
        copies: Option<Copies>,
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
        &mut self,
        store: &dyn LockStore,
        clock: &dyn Clock,
    ) -> Result<Told, StoreError> {
        let (name, id, now) = (&self.name, self.id, clock.now());
        let deadline = self.expires.min(now + self.timeout);
        let done = match &mut self.task {
            Task::Release { fence, closed_until, copies, .. } => {
                let keep = rest(*closed_until, now);
                // Before the await: a copy whose future is dropped may be executed.
                if let Some(copies) = copies {
                    copies.sent(now, keep);
                }
                let command = Release { name, id, fence: *fence, keep, next: None, deadline };
                let answer = store.release(command).await.inspect_err(|error| {
                    if let Some(copies) = copies {
                        copies.failed(error.kind());
                    }
                })?;
                match answer {
                    ReleaseAnswer::Kept { remaining } => return Ok(Told::Kept { remaining }),
                    ReleaseAnswer::Gone => match copies.map(|copies| copies.gone(clock.now())) {
                        Some(Gone::Unknown) => return Ok(Told::Over),
                        meaning => meaning == Some(Gone::Released),
                    },
                    _ => true,
                }
            }
            Task::Withdraw => store.withdraw(Withdraw { name, id, deadline }).await?.ended_grant,
            Task::Hold { fence, update, ttl } => {
                let (fence, update, ttl) = (*fence, *update, *ttl);
                let command = Hold { name, id, fence, update, ttl, deadline };
                store.hold(command).await? != HoldAnswer::Gone
            }
        };
        Ok(if done { Told::Done } else { Told::Gone })
    }

    /// The job is over: the server has answered, or is not asked any more.
    pub(crate) fn done(&self, told: Option<Told>) -> ReleaseOutcome {
        let outcome = told.map_or(ReleaseOutcome::Unconfirmed, Told::outcome);
        self.settle_turn(outcome);
        self.count(outcome);
        if told == Some(Told::Gone) && self.was_believed() {
            self.metrics.lost(LossReason::Gone);
        }
        outcome
    }

    /// Whether it releases a lease that was believed when it was given back.
    fn was_believed(&self) -> bool {
        matches!(&self.task, Task::Release { copies: Some(_), .. })
    }

    /// Tells the answer to the caller that waits for it, if one does.
    pub(super) fn tell(&mut self, told: Option<Told>) {
        if let (Some(told), Some(waits)) = (told, self.waits.take()) {
            // The caller may have gone: the release is counted all the same.
            let _: Result<(), Told> = waits.send(told);
        }
    }

    /// Counts a release, once, by how it ended.
    pub(crate) fn count(&self, outcome: ReleaseOutcome) {
        let via = match &self.task {
            Task::Release { via, .. } => *via,
            Task::Withdraw => ReleaseVia::Withdraw,
            Task::Hold { .. } => return,
        };
        self.metrics.release(outcome, via);
        if outcome == ReleaseOutcome::Unconfirmed {
            // The failures of its commands are logged, and the metrics count it.
            tracing::debug!(
                lock = %self.name, lease = %self.id,
                "the server could not be told of a release; the lease ends with its ttl"
            );
        }
    }

    /// The reaper goes on with it: nobody else needs to see to the end of its turn.
    pub(super) fn taken_over(&self) {
        if let Task::Release { turn: Some(turn), .. } = &self.task
            && let Some(cohorts) = turn.cohorts.upgrade()
        {
            cohorts.turn_end_driven(&self.name, &turn.end);
        }
    }

    /// Tells the cohort that waits for the end of the turn, if there is one.
    fn settle_turn(&self, outcome: ReleaseOutcome) {
        if let Task::Release { turn: Some(turn), .. } = &self.task {
            turn.settle(&self.name, outcome);
        }
    }

    /// The lock whose lease this job ends, if it does: an acquire that is taken back had none.
    pub(crate) fn keeps_closed(&self) -> Option<LockName> {
        match self.task {
            Task::Release { .. } => Some(self.name.clone()),
            Task::Withdraw | Task::Hold { .. } => None,
        }
    }
}
