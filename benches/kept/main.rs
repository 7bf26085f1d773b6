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
mod round;
mod scenario;
mod subjects;
#[path = "../table.rs"]
#[expect(dead_code, reason = "every scenario is a row of its own")]
mod table;
mod targets;
mod waits;

#[path = "../contention/orchestrate/calls.rs"]
mod calls;
#[path = "../acquire_release/cpu.rs"]
mod cpu;
#[path = "../failures.rs"]
mod failures;
#[path = "../goal.rs"]
mod goal;
#[path = "../contention/worker/sleeper.rs"]
mod sleeper;
#[path = "../contention/worker/window.rs"]
mod window;

use std::{env, error::Error};

use bed::Bed;
use failures::Failures;
use round::COLUMNS;
use scenario::Scenario;
use table::Table;

/// What can go wrong: anything, and it is told.
type Failure = Box<dyn Error + Send + Sync>;

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). acquired/s: acquisitions, each with its release. ×
this: that of the first row divided by this one's, median of the rounds' ratios. handed/s:
acquisitions by another process than the one before. cmd, CPU µs: commands that clients sent and
processor time of all clients, for an acquisition. p50, p99: how long an acquire takes; handed p99:
one by another process than the one before.";

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
    let scenarios: Vec<Scenario> = Scenario::all().into_iter().filter(wanted).collect();
    let mut bed = Bed::start(quick)?;
    let mut table = Table::new("kept", "kept turns", COLUMNS, Some("× this"), LEGEND);
    let mut failures = Failures::default();
    for scenario in &scenarios {
        let rounds = if quick { 1 } else { scenario.rounds() };
        for number in 0..rounds {
            eprintln!("{scenario}: round {} of {rounds}", number + 1);
            match scenario.round(&mut bed, number) {
                Ok(measured) => {
                    for (subject, round) in measured {
                        table.add(scenario.row(subject), round.values());
                    }
                }
                Err(failure) => failures.add(format!("{scenario}: {failure}")),
            }
        }
    }
    table.print();
    targets::print(&table, &scenarios);
    failures.print();
    table.print_json();
    failures.end()
}
