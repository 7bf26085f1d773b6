#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    env,
    io::Read,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use leasehold_testkit::RedisServer;
use serde::de::DeserializeOwned;

use super::{calls::Calls, mode::Mode, round::Round};
use crate::{Failure, output::Output};

/// How long processes take until they contend.
const STARTUP: Duration = Duration::from_millis(300);

/// How long they may take to end after the window.
const DRAIN: Duration = Duration::from_secs(12);

/// How long each run is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    pub(crate) warmup: Duration,
    pub(crate) measured: Duration,
}

/// Runs a subject's processes under a load.
pub(crate) fn measure(
    server: &RedisServer,
    calls: &mut Calls,
    subject: &'static str,
    load: Mode,
    lengths: Lengths,
) -> Result<Round, Failure> {
    calls.flush()?;
    let ahead = STARTUP + lengths.warmup;
    let (start, start_unix) =
        (Instant::now() + ahead, SystemTime::now().duration_since(UNIX_EPOCH)? + ahead);
    let spawn = |index| {
        Process::<Output>::spawn(&worker(server, subject, load, lengths, start_unix, index))
    };
    let processes = (0..load.processes).map(spawn).collect::<Result<Vec<_>, _>>()?;
    sleep_until(start);
    let before = calls.count(subject)?;
    sleep_until(start + lengths.measured);
    let commands = calls.count(subject)?.rate_since(&before);
    let until = start + lengths.measured + DRAIN;
    let outputs = processes.into_iter().map(|process| process.output(until));
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    Ok(Round::of(subject, &outputs, commands, lengths.measured))
}

fn worker(
    server: &RedisServer,
    subject: &str,
    load: Mode,
    lengths: Lengths,
    start: Duration,
    index: usize,
) -> Vec<String> {
    let Mode { workers, hold_ms, pause_ms, .. } = load;
    let text = format!(
        "worker --peer {subject} --redis {} --name bench-{} --workers {workers} --hold-us {} \
         --pause-ms {pause_ms} --seconds {} --process-index {index} --start-at-unix-ms {}",
        server.url(),
        start.as_millis(),
        hold_ms * 1000,
        lengths.measured.as_secs_f64(),
        start.as_millis(),
    );
    text.split_whitespace().map(str::to_owned).collect()
}

/// This program once more, with other arguments; it prints one line of JSON. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process<T> {
    child: Child,
    text: JoinHandle<std::io::Result<String>>,
    output: std::marker::PhantomData<T>,
}

impl<T: DeserializeOwned> Process<T> {
    /// Starts it.
    pub(crate) fn spawn(arguments: &[String]) -> Result<Self, Failure> {
        let mut command = Command::new(env::current_exe()?);
        let mut child =
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut stdout = child.stdout.take().ok_or("there is no pipe")?;
        let text = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        Ok(Self { child, text, output: std::marker::PhantomData })
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

fn sleep_until(instant: Instant) {
    thread::sleep(instant.saturating_duration_since(Instant::now()));
}
