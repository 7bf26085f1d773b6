use std::{cmp::Reverse, collections::BTreeMap};

use crate::round::Round;

/// Rounds of the floor and of Leasehold, by kind of runtime and number of tasks.
#[derive(Debug, Default)]
pub(crate) struct Report(BTreeMap<Load, Vec<(Round, Round)>>);

/// The kind of runtime, multi-threaded first, and the number of tasks.
type Load = (Reverse<&'static str>, usize);

impl Report {
    /// Adds a round of the floor and the round of Leasehold that followed it.
    pub(crate) fn add(&mut self, kind: &'static str, tasks: usize, floor: Round, leasehold: Round) {
        self.0.entry((Reverse(kind), tasks)).or_default().push((floor, leasehold));
    }

    /// Prints a table for people, then a line of JSON per row for machines.
    pub(crate) fn print(&self) {
        println!("uncontended acquire + release; medians of interleaved rounds (least..most)\n");
        println!(
            "{:<15} {:>5}  {:>28}  {:>28}  {:>6}  {:>10}  {:>10}  {:>6}",
            "runtime",
            "tasks",
            "floor pairs/s",
            "leasehold pairs/s",
            "ratio",
            "floor µs",
            "lease. µs",
            "ratio"
        );
        for ((Reverse(kind), tasks), rounds) in &self.0 {
            let row = Row::of(rounds);
            println!(
                "{kind:<15} {tasks:>5}  {:>28}  {:>28}  {:>6.2}  {:>10.1}  {:>10.1}  {:>6.2}",
                row.floor.shown(),
                row.leasehold.shown(),
                row.speed_ratio,
                row.floor_cpu,
                row.leasehold_cpu,
                row.cpu_ratio
            );
        }
        println!(
            "\nµs: processor time of the client per pair. Ratios: median of the ratios of a round.\n"
        );
        for ((Reverse(kind), tasks), rounds) in &self.0 {
            let row = Row::of(rounds);
            let print =
                |what, value, ratio| print_json(&format!("{what}/{kind}/{tasks}"), value, ratio);
            print("pairs_per_second", row.leasehold.median, row.speed_ratio);
            print("cpu_micros_per_pair", row.leasehold_cpu, row.cpu_ratio);
        }
    }
}

fn print_json(row: &str, value: f64, ratio: f64) {
    let line = serde_json::json!({
        "bench": "acquire_release", "row": row, "value": value, "ratio": ratio
    });
    println!("{line}");
}

/// The medians of one number of tasks.
struct Row {
    floor: Spread,
    leasehold: Spread,
    speed_ratio: f64,
    floor_cpu: f64,
    leasehold_cpu: f64,
    cpu_ratio: f64,
}

impl Row {
    fn of(rounds: &[(Round, Round)]) -> Self {
        let each = |value: fn(&(Round, Round)) -> f64| Spread::of(rounds.iter().map(value));
        Self {
            floor: each(|(floor, _)| floor.pairs_per_second),
            leasehold: each(|(_, leasehold)| leasehold.pairs_per_second),
            speed_ratio: each(|(f, l)| l.pairs_per_second / f.pairs_per_second).median,
            floor_cpu: each(|(floor, _)| floor.cpu_micros_per_pair).median,
            leasehold_cpu: each(|(_, leasehold)| leasehold.cpu_micros_per_pair).median,
            cpu_ratio: each(|(f, l)| l.cpu_micros_per_pair / f.cpu_micros_per_pair).median,
        }
    }
}

/// Median, least and most of some values.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(values.len() / 2),
            least: at(0),
            most: at(values.len().saturating_sub(1)),
        }
    }

    fn shown(&self) -> String {
        format!("{:.0} ({:.0}..{:.0})", self.median, self.least, self.most)
    }
}
