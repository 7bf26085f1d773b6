use std::mem;

use leasehold_core::{
    Instant,
    metric::{AcquireOutcome, ClassMetrics},
};

use crate::{error::AcquireError, guard::Guard, self_wait::Suspicion};

use super::line::InLine;

/// What a call has learnt of its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contention {
    /// Nothing: it may be free.
    Free,
    /// Another has it.
    Held,
    /// Another runtime has it, and may keep it idle.
    Kept,
}

/// Counts how a call went, also when its future is dropped.
pub(super) struct AcquireTally<'a> {
    metrics: &'a ClassMetrics,
    tries: bool,
    started: Instant,
    pub(super) found: Contention,
    waiting: bool,
    /// How many stood before the call when it came.
    behind: Option<u64>,
    pub(super) reentered: bool,
    /// Known once it waits.
    pub(super) suspicion: Option<Suspicion>,
    outcome: AcquireOutcome,
}

impl<'a> AcquireTally<'a> {
    pub(super) fn new(metrics: &'a ClassMetrics, tries: bool, started: Instant) -> Self {
        Self {
            metrics,
            tries,
            started,
            found: Contention::Free,
            waiting: false,
            behind: None,
            reentered: false,
            suspicion: None,
            outcome: AcquireOutcome::Cancelled,
        }
    }

    /// Another has the lock, by what the server said or this runtime knows.
    pub(super) fn finds_held(&mut self) {
        if mem::replace(&mut self.found, Contention::Held) == Contention::Free
            && let Some(behind) = self.behind
        {
            self.metrics.queued(behind);
        }
    }

    pub(super) fn waits(&mut self, in_line: &InLine<'_>) {
        if mem::replace(&mut self.waiting, true) {
            return;
        }
        self.metrics.waits.began(self.started);
        let (behind, is_held) =
            in_line.look(|state, _| (state.length(), state.is_known_held())).unwrap_or_default();
        self.behind = Some(behind);
        if is_held {
            self.finds_held();
        }
    }

    pub(super) fn finish(mut self, outcome: &Result<Guard, AcquireError>) {
        self.outcome = match outcome {
            Ok(_) if self.reentered => AcquireOutcome::Reentered,
            Ok(_) => AcquireOutcome::Acquired,
            Err(AcquireError::Timeout(_)) if self.tries => AcquireOutcome::Busy,
            Err(AcquireError::Timeout(_)) => AcquireOutcome::Timeout,
            Err(AcquireError::Unavailable(_)) => AcquireOutcome::Unavailable,
            Err(AcquireError::Lost(_)) => AcquireOutcome::Lost,
            Err(_) => AcquireOutcome::Error,
        };
    }
}

impl Drop for AcquireTally<'_> {
    fn drop(&mut self) {
        if self.waiting {
            self.metrics.waits.ended(self.started);
        }
        self.metrics.acquire(self.outcome);
        // Now and not before: a share of the calls is never above all of them.
        if self.found != Contention::Free {
            self.metrics.contended();
        }
    }
}
