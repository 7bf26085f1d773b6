#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leasehold_testkit::{QuorumGroup, RedisServer};

use super::{
    calls::Calls,
    load::Load,
    process::{DRAIN, Lengths, Process, sleep_until},
    round::Round,
    subject::Subject,
};
use crate::{Failure, output::Output};

/// How long processes take until they take locks.
const STARTUP: Duration = Duration::from_millis(500);

/// How much longer each takes with a JavaScript engine.
const ENGINE: Duration = Duration::from_millis(600);

/// Runs a subject's processes under a load, on the servers that are up.
pub(super) fn measure(
    group: &QuorumGroup,
    subject: Subject,
    load: Load,
    lengths: Lengths,
) -> Result<Round, Failure> {
    let mut counters = Counters::at(group)?;
    let engines = if subject.is_node() { load.processes() } else { 0 };
    let engines = ENGINE * u32::try_from(engines)?;
    let ahead = STARTUP + engines + lengths.warmup;
    let (start, start_unix) =
        (Instant::now() + ahead, SystemTime::now().duration_since(UNIX_EPOCH)? + ahead);
    let spawn = |index| {
        let options = options(group, subject, load, lengths, start_unix, index);
        Process::<Output>::spawn(subject.program()?, &options)
    };
    let processes = (0..load.processes()).map(spawn).collect::<Result<Vec<_>, _>>()?;
    sleep_until(start);
    let before = counters.count(subject)?;
    sleep_until(start + lengths.measured);
    let commands = counters.count(subject)?.rate_since(&before);
    let until = start + lengths.measured + DRAIN;
    let outputs = processes.into_iter().map(|process| process.output(until));
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    Ok(Round::of(subject.name(), &outputs, commands, lengths.measured))
}

fn options(
    group: &QuorumGroup,
    subject: Subject,
    load: Load,
    lengths: Lengths,
    start: Duration,
    index: usize,
) -> Vec<String> {
    // A name that no other run has: the servers do not forget.
    let text = format!(
        "--peer {subject} --redis {} --name bench-{} --own-names {} --workers {} --seconds {} \
         --process-index {index} --start-at-unix-ms {}",
        subject.address(group),
        start.as_millis(),
        load.has_own_names(),
        load.tasks(),
        lengths.measured.as_secs_f64(),
        start.as_millis(),
    );
    text.split_whitespace().map(str::to_owned).collect()
}

/// Counts the commands that clients send to all servers that are up.
struct Counters(Vec<Calls>);

/// What each of them has counted.
struct Counts(Vec<super::calls::Count>);

impl Counters {
    fn at(group: &QuorumGroup) -> Result<Self, Failure> {
        let up = group.servers().filter(|server| is_up(server));
        Ok(Self(up.map(|server| Calls::at(server.socket())).collect::<Result<_, _>>()?))
    }

    fn count(&mut self, subject: Subject) -> Result<Counts, Failure> {
        let counts = self.0.iter_mut().map(|calls| calls.count(subject.name()));
        Ok(Counts(counts.collect::<Result<_, _>>()?))
    }
}

impl Counts {
    fn rate_since(&self, earlier: &Self) -> f64 {
        self.0.iter().zip(&earlier.0).map(|(now, then)| now.rate_since(then)).sum()
    }
}

fn is_up(server: &RedisServer) -> bool {
    server.try_query::<String>(&["PING"]).is_ok()
}
