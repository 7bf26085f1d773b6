#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    sync::mpsc::{Sender, channel},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use crate::Failure;

/// Sleeps more exactly than tokio's timers, which count in whole milliseconds and round up: a
/// section of 1 ms would be one of 2 ms.
#[derive(Debug, Clone)]
pub(crate) struct Sleeper(Sender<(Instant, oneshot::Sender<()>)>);

impl Sleeper {
    /// Starts the thread that sleeps, for one sleeper after the other: for holders of one lock.
    pub(crate) fn start() -> Self {
        let (sender, receiver) = channel::<(Instant, oneshot::Sender<()>)>();
        thread::spawn(move || {
            for (until, woken) in receiver {
                thread::sleep(until.saturating_duration_since(Instant::now()));
                // Nobody is there any more who wanted to be woken.
                let _ = woken.send(());
            }
        });
        Self(sender)
    }

    /// Sleeps.
    pub(crate) async fn sleep(&self, time: Duration) -> Result<(), Failure> {
        let (woken, waking) = oneshot::channel();
        self.0.send((Instant::now() + time, woken))?;
        Ok(waking.await?)
    }
}
