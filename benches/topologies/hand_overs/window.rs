#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::lengths::Lengths;

/// For how long tasks may go on to wait when all others stop.
const DRAIN: Duration = Duration::from_secs(10);

/// The time in which is measured, the same in all threads of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    start: Instant,
    end: Instant,
}

impl Window {
    /// One that starts when the subject has run for a while.
    pub(super) fn soon(lengths: Lengths) -> Self {
        let start = Instant::now() + lengths.warmup;
        Self { start, end: start + lengths.measured }
    }

    /// Whether an instant lies in the window.
    pub(super) fn contains(&self, instant: Instant) -> bool {
        self.start <= instant && instant < self.end
    }

    /// Whether the window was over at an instant.
    pub(super) fn is_over(&self, instant: Instant) -> bool {
        instant >= self.end
    }

    /// When a task that still waits is stuck.
    pub(super) fn drained(&self) -> Instant {
        self.end + DRAIN
    }

    /// Reads something when the window starts and when it ends; it blocks its thread.
    pub(super) fn measure<T>(&self, read: impl Fn() -> T) -> [T; 2] {
        [self.start, self.end].map(|instant| {
            thread::sleep(instant.saturating_duration_since(Instant::now()));
            read()
        })
    }
}
