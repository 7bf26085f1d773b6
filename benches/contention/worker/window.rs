#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{Failure, options::Options};

/// For how long tasks may go on to wait when all others stop.
const DRAIN: Duration = Duration::from_secs(5);

/// The time in which is measured, the same in all processes of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    start: Instant,
    end: Instant,
}

impl Window {
    /// The window that the command line names.
    pub(crate) fn of(options: &Options) -> Result<Self, Failure> {
        let (now, unix) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH)?);
        let ahead = options.start.checked_sub(unix).ok_or("ready after the window's start")?;
        Ok(Self { start: now + ahead, end: now + ahead + options.measured })
    }

    /// Whether an instant lies in the window.
    pub(crate) fn contains(&self, instant: Instant) -> bool {
        self.start <= instant && instant < self.end
    }

    /// Whether the window was over at an instant.
    pub(crate) fn is_over(&self, instant: Instant) -> bool {
        instant >= self.end
    }

    /// When a task that still waits is stuck.
    pub(crate) fn drained(&self) -> Instant {
        self.end + DRAIN
    }

    /// Reads something when the window starts and when it ends; it blocks its thread.
    pub(crate) fn measure<T>(&self, read: impl Fn() -> T) -> (T, T) {
        let at = |instant: Instant| {
            thread::sleep(instant.saturating_duration_since(Instant::now()));
            read()
        };
        (at(self.start), at(self.end))
    }
}
