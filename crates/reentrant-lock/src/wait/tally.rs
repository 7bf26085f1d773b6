use std::sync::Arc;

use leasehold_core::{
    Instant,
    metric::{AcquireOutcome, ClassMetrics},
};

use crate::{engine::InLine, error::AcquireError, guard::Guard};

/// Counts how a call went, also when its future is dropped.
#[derive(Debug)]
pub(super) struct Tally {
    metrics: Arc<ClassMetrics>,
    /// As what a wait counts that is over.
    over: AcquireOutcome,
    started: Instant,
    contended: bool,
    waiting: bool,
    /// How many stood before the call when it came.
    behind: Option<u64>,
    pub(super) reentered: bool,
    outcome: AcquireOutcome,
}

impl Tally {
    pub(super) fn new(metrics: &Arc<ClassMetrics>, tries: bool, started: Instant) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            over: if tries { AcquireOutcome::Busy } else { AcquireOutcome::Timeout },
            started,
            contended: false,
            waiting: false,
            behind: None,
            reentered: false,
            outcome: AcquireOutcome::Cancelled,
        }
    }

    /// Another has the lock, by what the server said or by what this runtime knows: a command that
    /// failed says nothing of it.
    pub(super) fn finds_held(&mut self) {
        if !std::mem::replace(&mut self.contended, true)
            && let Some(behind) = self.behind
        {
            self.metrics.queued(behind);
        }
    }

    /// The call stands in line.
    pub(super) fn waits(&mut self, in_line: &InLine) {
        if std::mem::replace(&mut self.waiting, true) {
            return;
        }
        self.metrics.wait_began(self.started);
        self.behind = Some(in_line.arrived_behind());
        if in_line.is_known_held() {
            self.finds_held();
        }
    }

    pub(super) fn finish(mut self, outcome: &Result<Guard, AcquireError>) {
        self.outcome = match outcome {
            Ok(_) if self.reentered => AcquireOutcome::Reentered,
            Ok(_) => AcquireOutcome::Acquired,
            Err(AcquireError::Timeout(_)) => self.over,
            Err(AcquireError::Unavailable(_)) => AcquireOutcome::Unavailable,
            Err(AcquireError::Lost(_)) => AcquireOutcome::Lost,
            Err(_) => AcquireOutcome::Error,
        };
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if self.waiting {
            self.metrics.wait_ended(self.started);
        }
        self.metrics.acquire(self.outcome);
        // Now and not before: a share of the calls is never above all of them.
        if self.contended {
            self.metrics.contended();
        }
    }
}
