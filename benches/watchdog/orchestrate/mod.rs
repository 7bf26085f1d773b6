//! Starts a process for every run, and puts together what they print.

mod plan;
mod run;
mod targets;
mod values;

use plan::{Plan, Subject};

use crate::{Failure, failures::Failures, table::Table};

const LEGEND: &str = "\
One process holds leases of distinct names, and their renewals are watched after all were acquired.
renewed/s: leases renewed per second, mean; max/mean: the fullest second divided by it. cmd/s:
scripts that the client called. CPU ms/s: processor time of the client. lag: how late renewals were
sent. bytes: what resident memory grew by, per lease. task-per-lease: a task for each lease, which
sleeps and renews, all on one multiplexed connection. faulty: Leasehold while one call in twenty
fails at random, and its connection for renewals is a black hole for a third of the ttl.";

/// Runs everything and prints tables. Numbers ask for runs of so many leases only, words for the
/// subjects whose name contains them, `--seconds n` for another time, `--test` for one quick pass,
/// as `cargo test` does.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let plan = Plan::of(arguments)?;
    let (title, columns) = ("very many leases in one runtime", values::COLUMNS);
    let mut table = Table::new("watchdog", title, columns, Some("× this"), LEGEND);
    let mut failures = Failures::default();
    let runs = plan.runs();
    for run in &runs {
        eprintln!("{run}");
        match run::measure(*run) {
            Ok(output) => {
                if run.subject == Subject::Faulty && output.failed == 0 {
                    failures.add(format!("{run}: no fault struck"));
                }
                table.add(run.row(), values::of(run, &output));
            }
            Err(failure) => failures.add(format!("{run}: {failure}")),
        }
    }
    table.print();
    targets::print(&table, &runs);
    failures.print();
    table.print_json();
    failures.end()
}
