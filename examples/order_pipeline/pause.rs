#![expect(clippy::disallowed_methods, reason = "an example has no clock of its own to ask")]

use std::time::{Duration, Instant};

/// Lets time pass, as work that is not done here would.
pub(crate) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn time(self) -> Duration {
        self.0.elapsed()
    }
}
