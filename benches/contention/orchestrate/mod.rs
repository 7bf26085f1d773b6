//! Starts the processes of all subjects, round by round, and puts together what they print.

mod calls;
mod mode;
mod process;
mod report;
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
use report::Report;

use crate::{Failure, crowd::Crowd};

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
    let mut report = Report::default();
    for round in 0..rounds {
        for &mode in &modes {
            eprintln!("round {} of {rounds}, {mode}", round + 1);
            for subject in SUBJECTS {
                let Some(load) = mode::shape(subject, mode) else { continue };
                match run::measure(&server, &mut calls, subject, load, lengths) {
                    Ok(done) => report.add(mode, subject, round, done),
                    Err(failure) => report.failures.add(format!("{mode}, {subject}: {failure}")),
                }
            }
        }
    }
    if words.is_empty() {
        report.crowd = Some(crowd(&server, quick)?);
    }
    report.print();
    report.failures.end()
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
