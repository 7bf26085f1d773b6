use std::{
    convert::Infallible,
    io::{self, IsTerminal},
    time::Duration,
};

use leasehold::time::{Clock, Instant, SystemClock};

use crate::{durations::EVERY, output::write_err};

const WIDTH: u32 = 30;

/// A bar on the standard error, if that is a terminal.
pub(super) struct ProgressBar {
    began: Instant,
    time: Duration,
    is_shown: bool,
}

impl ProgressBar {
    pub(super) fn new(time: Duration) -> Self {
        Self { began: SystemClock.now(), time, is_shown: io::stderr().is_terminal() }
    }

    /// Moves the bar until it is dropped.
    pub(super) async fn show(&mut self, what: &str) -> Infallible {
        loop {
            if self.is_shown {
                let gone = SystemClock.now().saturating_since(self.began);
                write_err(&format!("\r{}", bar(gone, self.time, what)));
            }
            // As often as it grows.
            let pause = EVERY.min(self.time / WIDTH);
            SystemClock.sleep_until(SystemClock.now() + pause).await;
        }
    }

    /// Clears the line.
    pub(super) fn end(self) {
        if self.is_shown {
            write_err("\r\u{1b}[K");
        }
    }
}

fn bar(gone: Duration, time: Duration, what: &str) -> String {
    let share = gone.saturating_mul(WIDTH).as_millis() / time.as_millis().max(1);
    let (width, done) = (WIDTH as usize, usize::try_from(share).unwrap_or(usize::MAX));
    let full = "#".repeat(done.min(width));
    format!("[{full:.<width$}] {:>3}s  {what:<45}", gone.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_up_and_no_further() {
        let at = |seconds| bar(Duration::from_secs(seconds), Duration::from_secs(20), "x");
        assert!(at(0).starts_with("[......"));
        assert!(at(10).contains(&format!("{}{}]", "#".repeat(15), ".".repeat(15))));
        assert!(at(99).contains(&format!("[{}]", "#".repeat(30))));
    }
}
