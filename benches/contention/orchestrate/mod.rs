//! Starts the processes of all subjects, round by round, and puts together what they print.

mod calls;
mod mode;
mod process;
mod round;
mod run;
mod targets;

use std::{
    env,
    process::Command,
    time::{Duration, Instant},
};

use calls::Calls;
use leasehold_testkit::RedisServer;
use mode::{Mode, SUBJECTS};
use process::{Lengths, Process};
use round::COLUMNS;

use crate::{Failure, crowd::Crowd, failures::Failures, table::Table};

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). handed/s: acquisitions per second by another task than the
one before; acquired/s: all of them. × this: Leasehold's hand-overs divided by this row's, median of the
rounds' ratios. p50, p99: waits. cmd, CPU µs: commands that clients sent and processor time of all client
processes, per hand-over. least/most: served task. held: acquisitions × measured hold, the share of the
time in which the lock was held. p99/turn: p99 divided by tasks × measured hold. The one-script floor is
one process, the push floor two that know whose turn it is, the queue floor any number that queue.";

/// How many rounds of each; odd, so that the median is one that was seen.
const ROUNDS: usize = 3;

const FULL: Lengths = Lengths { warmup: Duration::from_secs(1), measured: Duration::from_secs(3) };

const QUICK: Lengths =
    Lengths { warmup: Duration::from_millis(100), measured: Duration::from_millis(100) };

/// Runs everything and prints tables. `--test` asks for one quick pass, as `cargo test` does;
/// any other word for the modes only whose name contains it.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let quick = arguments.iter().any(|argument| argument == "--test");
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let wanted =
        |mode: &Mode| words.is_empty() || words.iter().any(|w| mode.to_string().contains(*w));
    let modes: Vec<Mode> = Mode::all().into_iter().filter(wanted).collect();
    let (rounds, lengths) = if quick { (1, QUICK) } else { (ROUNDS, FULL) };

    let server = RedisServer::builder().tcp().start();
    let mut calls = Calls::at(server.socket())?;
    let mut table = Table::new("contention", "one contended name", COLUMNS, Some("× this"), LEGEND);
    let mut failures = Failures::default();
    for round in 0..rounds {
        for &mode in &modes {
            eprintln!("round {} of {rounds}, {mode}", round + 1);
            for subject in SUBJECTS {
                let Some(load) = mode::shape(subject, mode) else { continue };
                match run::measure(&server, &mut calls, subject, load, lengths) {
                    Ok(done) => {
                        if done.stuck > 0 {
                            let stuck = done.stuck;
                            failures.add(format!("{mode}, {subject}: {stuck} waited for ever"));
                        }
                        table.add(mode.row(subject), done.values());
                    }
                    Err(failure) => failures.add(format!("{mode}, {subject}: {failure}")),
                }
            }
        }
    }
    let crowd = if words.is_empty() { Some(crowd(&server, quick)?) } else { None };
    table.print();
    crowd.iter().for_each(Crowd::print);
    targets::print(&table, crowd.as_ref());
    failures.print();
    table.print_json();
    if let Some(crowd) = crowd {
        let row = serde_json::json!({"bench": "contention", "row": "crowd", "values": crowd});
        println!("{row}");
    }
    failures.end()
}

/// Very many waiters in one process.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn crowd(server: &RedisServer, quick: bool) -> Result<Crowd, Failure> {
    let (tasks, names) = if quick { (100, 50) } else { (10_000, 5_000) };
    eprintln!("{tasks} tasks that wait for one name, and {names} names");
    server.flush_all();
    let arguments = ["crowd".into(), server.url(), tasks.to_string(), names.to_string()];
    Process::spawn(Command::new(env::current_exe()?), &arguments)?
        .output(Instant::now() + Duration::from_secs(180))
}
