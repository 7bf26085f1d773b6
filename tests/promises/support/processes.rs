use std::{future::Future, time::Duration};

use leasehold::time::{Clock, Instant};
use leasehold_testkit::ManualClock;
use tokio::{runtime::Runtime, task::yield_now};

/// A process in virtual time: its tasks run only when a test lets them, so it can be paused while
/// the others go on.
#[derive(Debug)]
pub(crate) struct Process {
    tokio: Runtime,
    paused_until: Instant,
}

impl Process {
    /// How many times the tasks of a process have their turn at one stop of the clock.
    const TURNS: usize = 24;

    /// A process without tasks.
    pub(crate) fn new() -> Self {
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { tokio, paused_until: Instant::default() }
    }

    /// Does something where the process's tokio runtime is the present one.
    pub(crate) fn within<T>(&self, act: impl FnOnce() -> T) -> T {
        let _entered = self.tokio.enter();
        act()
    }

    /// Starts a task of the process.
    pub(crate) fn spawn<F>(&self, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.tokio.spawn(task)
    }

    /// Stops the process until some instant: nothing of it runs, whatever wakes it.
    pub(crate) fn pause_until(&mut self, at: Instant) {
        self.paused_until = at;
    }

    /// Lets the tasks run that can, unless the process is paused.
    pub(crate) fn run(&self, now: Instant) {
        if now >= self.paused_until {
            self.tokio.block_on(async {
                for _ in 0..Self::TURNS {
                    yield_now().await;
                }
            });
        }
    }

    /// When a paused process goes on.
    pub(crate) fn resumes(&self, now: Instant) -> Option<Instant> {
        Some(self.paused_until).filter(|at| *at > now)
    }
}

/// Moves a clock to whatever happens next: a timer, the end of a pause, or at most a step.
pub(crate) fn step(clock: &ManualClock, processes: &[Process], longest: Duration) {
    let now = clock.now();
    let resumed = processes.iter().filter_map(|process| process.resumes(now));
    let next = resumed.chain(clock.next_wake()).fold(now + longest, Ord::min);
    clock.set(next.max(now));
}
