use std::sync::Arc;

use leasehold_core::metric::ReleaseOutcome;

use super::{core::Engine, job::Job, reaper::Announced};

/// A job that goes to the reaper when this is dropped, unless it is disarmed before.
///
/// Made before an await, it makes sure that a cancelled future leaves nothing undone. From then on
/// the job counts as pending, so that a shutdown waits for it, whoever does it in the end.
#[derive(Debug)]
#[must_use = "dropped at once, it hands its job to the reaper at once"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    job: Option<(Announced, Job)>,
}

impl Cleanup {
    pub(crate) fn armed(engine: &Arc<Engine>, job: Job) -> Self {
        let announced = engine.reaper.announce(&job);
        Self { engine: Arc::clone(engine), job: Some((announced, job)) }
    }

    /// The work was done in another way.
    pub(crate) fn disarm(self) {
        self.settle(ReleaseOutcome::Released);
    }

    /// The work was tried in another way, and came to `outcome`: a shutdown reports what failed.
    pub(crate) fn settle(mut self, outcome: ReleaseOutcome) {
        if let Some((announced, job)) = self.job.take() {
            job.settle_turn(outcome);
            self.engine.reaper.retract(announced, &job, outcome);
        }
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if let Some((announced, job)) = self.job.take() {
            self.engine.reaper.take_announced(announced, job);
        }
    }
}
