use std::{
    fs,
    io::{BufRead, BufReader},
    process::{ChildStdout, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use leasehold_core::{Clock, SystemClock};

use crate::{patience::Patience, process::Process};

/// What of this process is in memory, in bytes.
///
/// # Panics
///
/// Panics where Linux does not tell.
pub fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibi = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibi.expect("a process has memory") * 1024
}

/// Another process that a test listens to, stops, continues and kills; killed when dropped.
///
/// Its standard output is read line by line; its standard error goes where this process' goes.
/// The methods that wait block their thread: in an async test, call them where that harms nobody.
#[derive(Debug)]
pub struct ChildProcess {
    process: Process,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl ChildProcess {
    /// How many lines wait to be read before further ones are thrown away.
    pub const MAX_UNREAD: usize = 65_536;

    /// Starts a process.
    ///
    /// # Panics
    ///
    /// Panics if the process cannot be started.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let stdout = child.stdout.take();
        let process = Process::new(child);
        let (sender, lines) = sync_channel(Self::MAX_UNREAD);
        thread::spawn(move || stdout.map(|stdout| forward(stdout, &sender)));
        Self { process, lines, seen: Vec::new() }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Waits for the next line that begins with `prefix` and returns what follows the prefix.
    ///
    /// Lines that come before it are remembered in [`seen`](Self::seen).
    ///
    /// # Panics
    ///
    /// Panics, with the lines seen so far, if the line has not come within `limit` or the process
    /// closed its output before.
    pub fn wait_for_line(&mut self, prefix: &str, limit: Duration) -> String {
        let ends_at = SystemClock.now() + limit;
        loop {
            let left = ends_at.saturating_since(SystemClock.now());
            let end = match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    match line.strip_prefix(prefix) {
                        Some(rest) => return rest.into(),
                        None => continue,
                    }
                }
                Err(RecvTimeoutError::Timeout) => format!("no line within {limit:?}"),
                Err(RecvTimeoutError::Disconnected) => "its output ended without a line".into(),
            };
            panic!(
                "process {}: {end} that begins with {prefix:?}; seen: {:#?}",
                self.id(),
                self.seen
            );
        }
    }

    /// Reads on until the process has closed its output, as it does when it ends.
    ///
    /// # Panics
    ///
    /// Panics, with the lines seen so far, if it has not closed it within `limit`.
    pub fn read_to_end(&mut self, limit: Duration) {
        let ends_at = SystemClock.now() + limit;
        loop {
            match self.lines.recv_timeout(ends_at.saturating_since(SystemClock.now())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!(
                    "process {}: its output has not ended within {limit:?}; seen: {:#?}",
                    self.id(),
                    self.seen
                ),
            }
        }
    }

    /// Reads the lines that have come, without waiting.
    pub fn catch_up(&mut self) {
        self.seen.extend(self.lines.try_iter());
    }

    /// The lines that were read so far.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Stops the process with `SIGSTOP` and returns when it stands still.
    ///
    /// # Panics
    ///
    /// Panics if the process has ended.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets the stopped process go on with `SIGCONT`; without effect if it has ended.
    pub fn cont(&self) {
        self.process.cont();
    }

    /// Kills the process with `SIGKILL` and reaps it; without effect if it has ended.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Waits until the process ends by itself; `None` when it did not within `limit`.
    pub fn wait_for_exit(&self, limit: Duration) -> Option<ExitStatus> {
        Patience::of(limit).until(|| self.process.exit_status())
    }
}

/// Reads to the end whatever happens, so that the child never blocks on a full pipe.
fn forward(stdout: ChildStdout, sender: &SyncSender<String>) {
    for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
        let _ = sender.try_send(String::from_utf8_lossy(&line).into_owned());
    }
}
