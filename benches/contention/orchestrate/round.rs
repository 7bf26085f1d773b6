use std::time::Duration;

use super::mode::is_floor;
use crate::{output::Output, table::Column};

/// The columns of a round's values.
pub(crate) const COLUMNS: &[Column] = &[
    ("handed/s", "hand_overs_per_second", 0),
    ("acquired/s", "acquired_per_second", 0),
    ("p50 ms", "p50_ms", 3),
    ("p99 ms", "p99_ms", 3),
    ("cmd", "cmd", 3),
    ("CPU µs", "cpu_us", 2),
    ("least/most", "least_of_most", 2),
    ("hold ms", "hold_ms", 3),
    ("held", "held", 3),
    ("p99/turn", "p99_of_turn", 2),
];

/// What one run of a subject came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Acquisitions per second.
    pub(crate) acquired: f64,
    /// Acquisitions per second by another task than the one before.
    pub(crate) handed: f64,
    pub(crate) wait_p50_us: f64,
    pub(crate) wait_p99_us: f64,
    /// Commands that clients sent, per second.
    pub(crate) commands: f64,
    /// Processor time of all clients, per second.
    pub(crate) cpu_us: f64,
    pub(crate) least_most: f64,
    /// The measured hold.
    pub(crate) hold_us: f64,
    /// Tasks in all.
    pub(crate) tasks: f64,
    pub(crate) stuck: usize,
}

impl Round {
    /// Puts together what the processes of a run printed.
    pub(crate) fn of(subject: &str, outputs: &[Output], commands: f64, measured: Duration) -> Self {
        let seconds = measured.as_secs_f64();
        let served: Vec<u64> = outputs.iter().flat_map(|output| output.acquired.clone()).collect();
        let acquired: u64 = served.iter().sum();
        let handed = if is_floor(subject) { acquired } else { handed(outputs) };
        let holds = outputs.iter().map(|output| output.hold_us_mean * float(total(output)));
        let least = served.iter().min().copied().unwrap_or(0);
        let most = served.iter().max().copied().unwrap_or(0);
        let waits = Waits::of(outputs);
        Self {
            acquired: float(acquired) / seconds,
            handed: float(handed) / seconds,
            wait_p50_us: waits.percentile(0.5),
            wait_p99_us: waits.percentile(0.99),
            commands,
            cpu_us: outputs.iter().map(|output| output.cpu_us).sum::<f64>() / seconds,
            least_most: float(least) / float(most.max(1)),
            hold_us: holds.sum::<f64>() / float(acquired.max(1)),
            tasks: float(served.len() as u64),
            stuck: outputs.iter().map(|output| output.stuck).sum(),
        }
    }

    /// A value for each column.
    pub(crate) fn values(&self) -> Vec<f64> {
        vec![
            self.handed,
            self.acquired,
            self.wait_p50_us / 1e3,
            self.wait_p99_us / 1e3,
            self.commands / self.handed,
            self.cpu_us / self.handed,
            self.least_most,
            self.hold_us / 1e3,
            // The share of the time in which somebody held the lock.
            self.acquired * self.hold_us / 1e6,
            // Where 1 is that each task is served once before.
            self.wait_p99_us / (self.tasks * self.hold_us),
        ]
    }
}

/// Waits of all processes in order; one stands for as many as its process had per one it told.
struct Waits(Vec<(f64, f64)>);

impl Waits {
    fn of(outputs: &[Output]) -> Self {
        let mut all = Vec::new();
        for output in outputs {
            let weight = float(total(output)) / float(output.waits_us.len().max(1) as u64);
            all.extend(output.waits_us.iter().map(|wait| (*wait, weight)));
        }
        all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        Self(all)
    }

    fn percentile(&self, share: f64) -> f64 {
        let wanted = share * self.0.iter().map(|(_, weight)| weight).sum::<f64>();
        let mut passed = 0.0;
        for (wait, weight) in &self.0 {
            passed += weight;
            if passed >= wanted {
                return *wait;
            }
        }
        f64::NAN
    }
}

/// How often another task had the lock before; where several processes took turns, their instants
/// tell.
fn handed(outputs: &[Output]) -> u64 {
    if let [alone] = outputs {
        return alone.switches;
    }
    let mut order: Vec<(u64, usize)> = Vec::new();
    let tasks = outputs.iter().flat_map(|output| output.acquired_at_ns.iter().flatten());
    for (who, distances) in tasks.enumerate() {
        let instants = distances.iter().scan(0, |at, distance| {
            *at += distance;
            Some((*at, who))
        });
        order.extend(instants);
    }
    order.sort_unstable();
    order.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64
}

fn total(output: &Output) -> u64 {
    output.acquired.iter().sum()
}

#[expect(clippy::cast_precision_loss, reason = "a count of a few seconds is small")]
fn float(number: u64) -> f64 {
    number as f64
}
