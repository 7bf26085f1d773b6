#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    env,
    process::Command,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use leasehold_testkit::RedisServer;

use super::{
    calls::Calls,
    mode::Mode,
    process::{DRAIN, Lengths, Process, sleep_until},
    round::Round,
};
use crate::{Failure, output::Output};

/// How long processes take until they contend.
const STARTUP: Duration = Duration::from_millis(300);

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
        let arguments = worker(server, subject, load, lengths, start_unix, index);
        Process::<Output>::spawn(Command::new(env::current_exe()?), &arguments)
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
