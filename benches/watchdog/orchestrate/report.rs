use super::{
    plan::{Run, Subject},
    targets,
};
use crate::{
    failures::Failures,
    figures::{cells, key},
    output::Output,
};

const LEGEND: &str = "\
One process holds leases of distinct names, and their renewals are watched after all were acquired.
renewed/s: leases renewed per second, mean; max/mean: the fullest second divided by it. cmd/s:
scripts that the client called. CPU ms/s: processor time of the client. lag: how late renewals were
sent. bytes: what resident memory grew by, per lease. task-per-lease: a task for each lease, which
sleeps and renews, all on one multiplexed connection. faulty: Leasehold while one call in twenty
fails at random, and its connection for renewals is a black hole for a third of the ttl.";

/// What the runs came to.
#[derive(Debug, Default)]
pub(crate) struct Report {
    runs: Vec<(Run, Output)>,
    pub(crate) failures: Failures,
}

/// A number of a run.
pub(crate) type Value = fn(&Run, &Output) -> f64;

/// The columns: head, value, digits after the point.
const COLUMNS: [(&str, Value, usize); 13] = [
    ("lost", |_, output| count(output.lost), 0),
    ("renewed/s", renewed, 0),
    ("max/mean", fullest, 2),
    ("failed", |_, output| count(output.failed), 0),
    ("cmd/s", commands, 1),
    ("per cmd", |run, output| renewed(run, output) / commands(run, output), 1),
    ("CPU ms/s", cpu, 2),
    ("lag p50 ms", |_, output| output.lag_p50_ms, 2),
    ("p99 ms", |_, output| output.lag_p99_ms, 2),
    ("max ms", |_, output| output.lag_max_ms, 2),
    ("bytes", |_, output| output.bytes_per_lease, 0),
    ("acquired in s", |_, output| output.acquired_in_s, 2),
    ("CPU s", |_, output| output.acquired_cpu_s, 2),
];

impl Report {
    /// Adds what a run came to.
    pub(crate) fn add(&mut self, run: Run, output: Output) {
        if run.subject == Subject::Faulty && output.failed == 0 {
            self.failures.add(format!("{run}: no fault struck"));
        }
        self.runs.push((run, output));
    }

    /// A value of the run of a subject.
    pub(crate) fn value(&self, leases: usize, subject: Subject, value: Value) -> Option<f64> {
        let of = |(run, _): &&(Run, Output)| run.leases == leases && run.subject == subject;
        self.runs.iter().find(of).map(|(run, output)| value(run, output))
    }

    /// A value of the library divided by that of the tasks.
    pub(crate) fn ratio(&self, leases: usize, value: Value) -> Option<f64> {
        let of = |subject| self.value(leases, subject, value);
        Some(of(Subject::Leasehold)? / of(Subject::TaskEach)?)
    }

    /// The numbers of leases that there are.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.runs.iter().map(|(run, _)| run.leases).collect();
        sizes.dedup();
        sizes
    }

    /// Prints a table for people, then a line of JSON per row for machines.
    pub(crate) fn print(&self) {
        println!("very many leases in one runtime\n\n{LEGEND}\n");
        let head = cells(14, COLUMNS.iter().map(|(head, ..)| (*head).into()));
        println!("{:>8} {:<16}{head}", "leases", "");
        for (run, output) in &self.runs {
            let cell = |(_, value, digits): &(&str, Value, usize)| {
                format!("{:.*}", *digits, value(run, output))
            };
            let line = cells(14, COLUMNS.iter().map(cell));
            println!("{:>8} {:<16}{line}", run.leases, run.subject.to_string());
        }
        targets::print(self);
        self.failures.print();
        for (run, output) in &self.runs {
            self.print_json(*run, output);
        }
    }

    fn print_json(&self, run: Run, output: &Output) {
        let ratio = (run.subject == Subject::Leasehold).then(|| self.ratio(run.leases, commands));
        let mut row = serde_json::json!({
            "bench": "watchdog",
            "row": format!("commands_per_second/{}/{}", run.leases, run.subject),
            "value": commands(&run, output),
            "ratio": ratio.flatten(),
        });
        for (head, value, _) in COLUMNS {
            row[key(head)] = value(&run, output).into();
        }
        println!("{row}");
    }
}

/// Leases renewed per second.
#[expect(clippy::cast_precision_loss, reason = "a run is short")]
pub(crate) fn renewed(run: &Run, output: &Output) -> f64 {
    output.renewed.iter().sum::<u64>() as f64 / run.seconds as f64
}

/// The fullest second divided by the mean.
pub(crate) fn fullest(run: &Run, output: &Output) -> f64 {
    count(output.renewed.iter().copied().max().unwrap_or_default()) / renewed(run, output)
}

/// Commands per second.
#[expect(clippy::cast_precision_loss, reason = "a run is short")]
pub(crate) fn commands(run: &Run, output: &Output) -> f64 {
    count(output.commands) / run.seconds as f64
}

/// Milliseconds of processor time per second.
#[expect(clippy::cast_precision_loss, reason = "a run is short")]
pub(crate) fn cpu(run: &Run, output: &Output) -> f64 {
    output.cpu_s * 1e3 / run.seconds as f64
}

#[expect(clippy::cast_precision_loss, reason = "there are not that many")]
fn count(count: u64) -> f64 {
    count as f64
}
