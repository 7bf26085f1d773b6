//! Kept turns: what `keep_idle` gains, and what it costs where it does not help,
//! `cargo bench -p leasehold-benches --bench kept`.
//!
//! Scenarios run with keeping on and with keeping off; beside them stand two minimal scripts with a
//! fence (*floor*). Rounds of these are interleaved on one private server. Every fence of a name
//! has to be above the one before. Called with the argument `worker`, this program is one of the
//! processes of a scenario.

mod bed;
mod kind;
mod options;
mod pairs;
mod processes;
mod recall;
mod report;
mod round;
mod scenario;
mod subjects;
mod targets;
mod waits;

#[path = "../contention/orchestrate/calls.rs"]
mod calls;
#[path = "../acquire_release/cpu.rs"]
mod cpu;
#[path = "../failures.rs"]
mod failures;
#[path = "../figures.rs"]
mod figures;
#[path = "../goal.rs"]
mod goal;
#[path = "../contention/worker/sleeper.rs"]
mod sleeper;
#[path = "../contention/worker/window.rs"]
mod window;

use std::{env, error::Error};

use bed::Bed;
use report::Report;
use scenario::Scenario;

/// What can go wrong: anything, and it is told.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "worker" => processes::worker(rest),
        _ => measure(&arguments),
    }
}

/// Runs the scenarios and prints tables. `--test` asks for one quick pass, as `cargo test` does; any
/// other word for the scenarios only whose name contains it.
fn measure(arguments: &[String]) -> Result<(), Failure> {
    let quick = arguments.iter().any(|argument| argument == "--test");
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let wanted = |scenario: &Scenario| {
        words.is_empty() || words.iter().any(|word| scenario.to_string().contains(*word))
    };
    let mut bed = Bed::start(quick)?;
    let mut report = Report::default();
    for scenario in Scenario::all().into_iter().filter(wanted) {
        let rounds = if quick { 1 } else { scenario.rounds() };
        for number in 0..rounds {
            eprintln!("{scenario}: round {} of {rounds}", number + 1);
            match scenario.round(&mut bed, number) {
                Ok(round) => report.add(scenario, round),
                Err(failure) => report.failures.add(format!("{scenario}: {failure}")),
            }
        }
        report.print_table(scenario);
    }
    report.print_end();
    report.failures.end()
}
