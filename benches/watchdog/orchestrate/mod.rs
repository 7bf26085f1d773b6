//! Starts a process for every run, and puts together what they print.

mod plan;
mod report;
mod run;
mod targets;

use plan::Plan;
use report::Report;

use crate::Failure;

/// Runs everything and prints tables. Numbers ask for runs of so many leases only, words for the
/// subjects whose name contains them, `--seconds n` for another time, `--test` for one quick pass,
/// as `cargo test` does.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let plan = Plan::of(arguments)?;
    let mut report = Report::default();
    for run in plan.runs() {
        eprintln!("{run}");
        match run::measure(run) {
            Ok(output) => report.add(run, output),
            Err(failure) => report.failures.add(format!("{run}: {failure}")),
        }
    }
    report.print();
    report.failures.end()
}
