use std::sync::Arc;

use super::{core::Engine, job::Job};

/// A job that goes to the reaper when this is dropped, unless it is disarmed before.
///
/// Made before an await, it makes sure that a cancelled future leaves nothing undone.
#[derive(Debug)]
#[must_use = "dropped at once, it hands its job to the reaper at once"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    job: Option<Job>,
}

impl Cleanup {
    pub(crate) fn armed(engine: &Arc<Engine>, job: Job) -> Self {
        Self { engine: Arc::clone(engine), job: Some(job) }
    }

    /// The work was done in another way.
    pub(crate) fn disarm(mut self) {
        self.job = None;
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            self.engine.reaper.take(job);
        }
    }
}
