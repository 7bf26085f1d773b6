#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    io::{self, Read},
    marker::PhantomData,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde::de::DeserializeOwned;

use crate::Failure;

/// How long processes may take to end after the window.
pub(crate) const DRAIN: Duration = Duration::from_secs(12);

/// How long each run is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    pub(crate) warmup: Duration,
    pub(crate) measured: Duration,
}

/// A process that prints one line of JSON. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process<T> {
    child: Child,
    text: JoinHandle<io::Result<String>>,
    output: PhantomData<T>,
}

impl<T: DeserializeOwned> Process<T> {
    /// Starts it.
    pub(crate) fn spawn(mut command: Command, arguments: &[String]) -> Result<Self, Failure> {
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut stdout = child.stdout.take().ok_or("there is no pipe")?;
        let text = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        Ok(Self { child, text, output: PhantomData })
    }

    /// Waits for its end.
    pub(crate) fn output(mut self, until: Instant) -> Result<T, Failure> {
        while self.child.try_wait()?.is_none() {
            if Instant::now() > until {
                self.child.kill()?;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let status = self.child.wait()?;
        let text = self.text.join().map_err(|_| "the output was not read")??;
        if !status.success() {
            return Err(format!("a process failed, {status}").into());
        }
        Ok(serde_json::from_str(&text)?)
    }
}

/// Blocks this thread until then.
pub(crate) fn sleep_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}
