use std::sync::Arc;

use leasehold_core::{Instant, StoreError};
use tokio::{select, sync::oneshot};

use crate::closing::Copies;

use super::{
    core::Engine,
    job::{Job, Task, Told},
    reaper::Announced,
};

/// A job that goes to the reaper when this is dropped, unless it is done before.
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

    /// The job is the release of a lease that could be believed until `until`: after a copy
    /// without an answer, "gone" means that it was released.
    pub(crate) fn was_believed(mut self, until: Instant, unattended_at: Instant) -> Self {
        if let Some((_, Job { task: Task::Release { copies, .. }, .. })) = &mut self.job {
            *copies = Some(Copies::new(until, unattended_at));
        }
        self
    }

    /// Does the job, within the time of one attempt: tries once, and leaves the rest to the
    /// reaper, whose answer is told if it comes in time.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server has not answered by then. The reaper goes on, unless trying
    /// again does not mend the error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the job to the reaper.
    pub(crate) async fn confirm(mut self) -> Result<Told, StoreError> {
        let engine = Arc::clone(&self.engine);
        let Some((_, job)) = &mut self.job else { return Ok(Told::Done) };
        let answers_by = engine.clock.now() + job.timeout;
        let attempt = job.attempt(&*engine.store, &*engine.clock).await;
        let error = match engine.counted(attempt) {
            Ok(told) => {
                self.settle(Some(told));
                return Ok(told);
            }
            Err(error) if error.kind().is_transient() => error,
            Err(error) => {
                self.settle(None);
                return Err(error);
            }
        };
        if engine.clock.now() >= answers_by {
            return Err(error);
        }
        let (waits, told) = oneshot::channel();
        job.waits = Some(waits);
        drop(self);
        select! {
            biased;
            told = told => told.map_err(|_| error),
            () = engine.clock.sleep_until(answers_by) => Err(error),
        }
    }

    /// The work was done in another way.
    pub(crate) fn disarm(self) {
        self.settle(Some(Told::Done));
    }

    /// The job is over; a shutdown reports one that the server has not answered.
    fn settle(mut self, told: Option<Told>) {
        if let Some((announced, job)) = self.job.take() {
            let outcome = job.done(told);
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
