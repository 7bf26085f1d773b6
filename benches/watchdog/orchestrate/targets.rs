use super::plan::{Run, Subject};
use crate::table::Table;

/// What is to be reached: what, how much, and the most that is allowed.
type Target = (&'static str, Option<f64>, f64);

/// For so many leases all targets hold.
const MANY: usize = 100_000;

/// Prints which targets were reached.
pub(crate) fn print(table: &Table, runs: &[Run]) {
    println!("\ntargets\n");
    for run in runs.iter().filter(|run| run.subject == Subject::Leasehold) {
        for (what, value, most) in of(table, *run) {
            let Some(value) = value else { continue };
            let verdict = if value <= most { "reached" } else { "MISSED" };
            let what = format!("{} leases, {what}", run.leases);
            println!("{what:<58}{value:>12.4}   ≤ {most:<10.4}{verdict}");
        }
    }
}

fn of(table: &Table, run: Run) -> Vec<Target> {
    let row = |subject| Run { subject, ..run }.row();
    let own = |column| table.median(&run.row(), column);
    let of_tasks = |column| {
        let ratio = table.ratio(&run.row(), &row(Subject::TaskEach), column).median;
        Some(ratio).filter(|ratio| ratio.is_finite())
    };
    let mut targets = vec![
        ("lost", own("lost"), 0.0),
        ("lost where there are faults", table.median(&row(Subject::Faulty), "lost"), 0.0),
    ];
    if run.leases >= MANY {
        let ttl_ms = run.ttl.as_secs_f64() * 1e3;
        targets.extend([
            ("fullest second, of the mean", own("max_of_mean"), 2.0),
            ("lag p99, of the ttl", own("lag_p99_ms").map(|lag| lag / ttl_ms), 1.0 / 6.0),
            ("commands, of task-per-lease", of_tasks("commands_per_second"), 0.01),
            ("client CPU, of task-per-lease", of_tasks("cpu_ms_per_second"), 0.125),
            ("bytes each", own("bytes"), 700.0),
        ]);
    }
    targets
}
