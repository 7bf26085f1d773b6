use super::{
    plan::Subject,
    report::{Report, commands, cpu, fullest},
};

/// What is to be reached: what, how much, and the most that is allowed.
type Target = (String, Option<f64>, f64);

/// For so many leases all targets hold.
const MANY: usize = 100_000;

/// Prints which targets were reached.
pub(crate) fn print(report: &Report) {
    println!("\ntargets\n");
    for (what, value, most) in report.sizes().into_iter().flat_map(|leases| of(report, leases)) {
        let Some(value) = value else { continue };
        let verdict = if value <= most { "reached" } else { "MISSED" };
        println!("{what:<58}{value:>12.4}   ≤ {most:<10.4}{verdict}");
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are not that many leases")]
fn of(report: &Report, leases: usize) -> Vec<Target> {
    let own = |value| report.value(leases, Subject::Leasehold, value);
    let lost = |subject| report.value(leases, subject, |_, output| output.lost as f64);
    let mut targets = vec![
        (format!("{leases} leases, lost"), lost(Subject::Leasehold), 0.0),
        (format!("{leases} leases, lost where there are faults"), lost(Subject::Faulty), 0.0),
    ];
    if leases >= MANY {
        targets.extend([
            (format!("{leases} leases, fullest second, of the mean"), own(fullest), 2.0),
            (
                format!("{leases} leases, lag p99, of the ttl"),
                own(|run, output| output.lag_p99_ms / 1e3 / run.ttl.as_secs_f64()),
                1.0 / 6.0,
            ),
            (
                format!("{leases} leases, commands, of task-per-lease"),
                report.ratio(leases, commands),
                0.01,
            ),
            (
                format!("{leases} leases, client CPU, of task-per-lease"),
                report.ratio(leases, cpu),
                0.125,
            ),
            (
                format!("{leases} leases, bytes each"),
                own(|_, output| output.bytes_per_lease),
                700.0,
            ),
        ]);
    }
    targets
}
