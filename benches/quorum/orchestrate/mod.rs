//! Starts the processes of all subjects, round by round, and puts together what they print.

#[path = "../../contention/orchestrate/calls.rs"]
#[expect(dead_code, reason = "servers that forgot everything would stay out for a while")]
mod calls;
mod load;
#[path = "../../contention/orchestrate/process.rs"]
mod process;
mod report;
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

use process::Lengths;
use report::{Key, Report};
use site::Site;
use subject::Subject;

use self::load::Load;
use crate::Failure;

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
    let mut report = Report::default();
    let mut sites = site::Sites::default();
    for round in 0..rounds {
        for (done, &key) in keys.iter().enumerate() {
            eprintln!("round {} of {rounds}, {} of {}: {key}", round + 1, done + 1, keys.len());
            let Key { site, load, subject } = key;
            let measured = sites.with(site, |group| run::measure(group, subject, load, lengths));
            match measured {
                Ok(values) => report.add(key, round, values),
                Err(failure) => report.failures.add(format!("{key}: {failure}")),
            }
        }
    }
    report.print();
    report.failures.end()
}
