//! Starts the processes of all subjects, round by round, and puts together what they print.

#[path = "../../contention/orchestrate/calls.rs"]
#[expect(dead_code, reason = "servers that forgot everything would stay out for a while")]
mod calls;
mod key;
mod load;
#[path = "../../contention/orchestrate/process.rs"]
mod process;
#[path = "../../contention/orchestrate/round.rs"]
#[expect(dead_code, reason = "sections are empty here")]
mod round;
mod run;
mod site;
mod subject;
mod targets;

/// What the rounds of another benchmark ask.
mod mode {
    /// Whether a subject hands the lock over whenever it acquires it: none of these.
    pub(super) fn is_floor(_subject: &str) -> bool {
        false
    }
}

use std::time::Duration;

use key::Key;
use process::Lengths;
use site::Site;
use subject::Subject;

use self::load::Load;
use crate::{
    Failure,
    failures::Failures,
    table::{Column, Table},
};

const COLUMNS: &[Column] = &[
    ("rate/s", "per_second", 0),
    ("p50 µs", "p50_us", 0),
    ("p99 µs", "p99_us", 0),
    ("cmd", "commands", 2),
    ("CPU µs", "cpu_us", 1),
    ("stuck", "stuck", 0),
];

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). rate: pairs of acquire and release per second where each
task has its own lock; hand-overs per second, acquisitions by another task than the one before, where
all want one. × this: Leasehold's rate on the quorum divided by this row's, median of the rounds'
ratios. p50, p99: how long an acquire takes. cmd, CPU µs: commands that clients sent to all servers,
and processor time of all client processes, for each of those. All peers but those named default pause
for 0 to 4 ms between two tries. stuck: tasks that had not got the lock five seconds after the window,
when nobody wanted it any more. leasehold-one is Leasehold on one of the servers alone; leasehold-kept keeps idle locks for a second.";

/// How many rounds of each; odd, so that the median is one that was seen.
const ROUNDS: usize = 3;

const FULL: Lengths =
    Lengths { warmup: Duration::from_millis(300), measured: Duration::from_secs(1) };

const QUICK: Lengths =
    Lengths { warmup: Duration::from_millis(50), measured: Duration::from_millis(100) };

/// Runs everything and prints tables. `--test` asks for one quick pass, as `cargo test` does; any
/// other word for the rows only whose name contains it.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let quick = arguments.iter().any(|argument| argument == "--test");
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let is_wanted =
        |key: &Key| words.is_empty() || words.iter().any(|word| key.to_string().contains(*word));
    let keys: Vec<Key> = Key::all().into_iter().filter(is_wanted).collect();
    let (rounds, lengths) = if quick { (1, QUICK) } else { (ROUNDS, FULL) };
    let title = "a quorum of independent servers";
    let mut table = Table::new("quorum", title, COLUMNS, Some("× this"), LEGEND);
    let mut failures = Failures::default();
    let mut sites = site::Sites::default();
    for round in 0..rounds {
        for (done, &key) in keys.iter().enumerate() {
            eprintln!("round {} of {rounds}, {} of {}: {key}", round + 1, done + 1, keys.len());
            let Key { site, load, subject } = key;
            let measured = sites.with(site, |group| run::measure(group, subject, load, lengths));
            match measured {
                Ok(measured) => {
                    // That tasks of a peer wait until all others have left is one of its figures.
                    if measured.stuck > 0 && subject == Subject::Leasehold {
                        failures.add(format!("{key}: {} tasks waited for ever", measured.stuck));
                    }
                    table.add(key.row(), key.values(&measured));
                }
                Err(failure) => failures.add(format!("{key}: {failure}")),
            }
        }
    }
    table.print();
    targets::print(&table);
    failures.print();
    table.print_json();
    failures.end()
}
