use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on standard error while the program runs in a terminal, and nothing elsewhere.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn of(orders: usize) -> Self {
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(orders as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} orders, {elapsed}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(crate) fn add(&self, orders: usize) {
        self.0.inc(orders as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
