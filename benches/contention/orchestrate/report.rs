use std::collections::BTreeMap;

use super::{
    mode::{Mode, SUBJECTS},
    round::Round,
    targets,
};
use crate::{
    crowd::Crowd,
    failures::Failures,
    figures::{Spread, cells, key, shown},
};

const LEGEND: &str = "\
Medians of interleaved rounds. acquired/s: acquisitions per second, with the least and most of the
rounds. handed/s: those by another task than the one before. ×acquired, ×handed: Leasehold's rate
divided by this one's, median of the rounds' ratios. p50, p99: waits. cmd, CPU µs: commands that
clients sent and processor time of all client processes, per hand-over. least/most: served task.
held: acquisitions × measured hold, the share of the time in which the lock was held. p99/turn: p99
divided by tasks × measured hold. The one-script floor is one process, the push floor two that know
whose turn it is, the queue floor any number that queue.";

/// Rounds by mode and subject.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rounds: BTreeMap<(Mode, &'static str), BTreeMap<usize, Round>>,
    pub(crate) failures: Failures,
    pub(crate) crowd: Option<Crowd>,
}

/// A number of a round.
pub(crate) type Value = fn(&Round) -> f64;

/// The columns after the rates: head, value, digits after the point.
const COLUMNS: [(&str, Value, usize); 6] = [
    ("p50 ms", |round| round.wait_p50_us / 1e3, 3),
    ("p99 ms", |round| round.wait_p99_us / 1e3, 3),
    ("cmd", Round::commands_each, 3),
    ("CPU µs", Round::cpu_us_each, 2),
    ("least/most", |round| round.least_most, 2),
    ("hold ms", |round| round.hold_us / 1e3, 3),
];

/// Further columns where there is a section.
const OF_SECTIONS: [(&str, Value, usize); 2] =
    [("held", Round::utilisation, 3), ("p99/turn", Round::turns_at_p99, 2)];

impl Report {
    /// Adds what a subject came to in a round.
    pub(crate) fn add(&mut self, mode: Mode, subject: &'static str, number: usize, round: Round) {
        if round.stuck > 0 {
            let text = format!("{mode}, {subject}: {} tasks waited for ever", round.stuck);
            self.failures.add(text);
        }
        self.rounds.entry((mode, subject)).or_default().insert(number, round);
    }

    /// The median of a subject's rounds.
    pub(crate) fn median(&self, mode: Mode, subject: &'static str, value: Value) -> Option<f64> {
        middle(self.rounds.get(&(mode, subject))?.values().map(value))
    }

    /// Leasehold's value divided by a subject's, the median of the rounds.
    pub(crate) fn ratio(&self, mode: Mode, subject: &'static str, value: Value) -> Option<f64> {
        let reference = self.rounds.get(&(mode, SUBJECTS[0]))?;
        let own = self.rounds.get(&(mode, subject))?;
        let of = |(number, round)| Some(value(reference.get(number)?) / value(round));
        middle(own.iter().filter_map(of))
    }

    /// Prints tables for people, then a line of JSON per row for machines.
    pub(crate) fn print(&self) {
        println!("one contended name\n\n{LEGEND}");
        for mode in self.modes() {
            self.print_table(mode);
        }
        self.print_crowd();
        targets::print(self);
        self.failures.print();
        for (mode, subject) in self.rounds.keys() {
            self.print_json(*mode, subject);
        }
        if let Some(crowd) = &self.crowd {
            println!(
                "{}",
                serde_json::json!({"bench": "contention", "row": "crowd", "values": crowd})
            );
        }
    }

    fn modes(&self) -> Vec<Mode> {
        let mut modes: Vec<Mode> = self.rounds.keys().map(|(mode, _)| *mode).collect();
        modes.dedup();
        modes
    }

    fn print_table(&self, mode: Mode) {
        let Mode { processes, workers, hold_ms, pause_ms } = mode;
        println!("\n{processes} × {workers} tasks, {hold_ms} ms section, {pause_ms} ms pause\n");
        let columns = columns(mode);
        let head = cells(11, columns.iter().map(|(head, ..)| (*head).into()));
        let rates = ["acquired/s", "×acquired", "handed/s", "×handed"];
        println!(
            "{:<18}{:>34}{:>11}{:>11}{:>11}{head}",
            "", rates[0], rates[1], rates[2], rates[3]
        );
        for subject in SUBJECTS {
            if let Some(rounds) = self.rounds.get(&(mode, subject)) {
                let rates = self.rates(mode, subject, rounds);
                let median = |value, digits| shown(self.median(mode, subject, value), digits);
                let others = columns.iter().map(|(_, value, digits)| median(*value, *digits));
                println!("{subject:<18}{rates}{}", cells(11, others));
            }
        }
    }

    fn rates(&self, mode: Mode, subject: &'static str, rounds: &BTreeMap<usize, Round>) -> String {
        let spread = Spread::of(rounds.values().map(|round| round.acquired)).shown(0);
        let times = |value| shown(self.ratio(mode, subject, value), 2);
        format!(
            "{spread:>34}{:>11}{:>11}{:>11}",
            times(|round| round.acquired),
            shown(self.median(mode, subject, |round| round.handed), 0),
            times(|round| round.handed),
        )
    }

    fn print_crowd(&self) {
        let Some(crowd) = &self.crowd else { return };
        println!("\nvery many waiters in one process\n");
        println!(
            "{} tasks, one name: {:.0} bytes per waiting task ({:.0} of a task that waits for a \
             semaphore of tokio), {} places in Redis, {}, {:.1} ms",
            crowd.tasks,
            crowd.bytes_per_waiting_task,
            crowd.bytes_per_idle_task,
            crowd.places,
            if crowd.in_order { "served in order" } else { "NOT SERVED IN ORDER" },
            crowd.served_in_ms,
        );
        println!(
            "{} names: {:.0} commands/s, {} channel(s)",
            crowd.names, crowd.commands_per_second, crowd.channels
        );
    }

    fn print_json(&self, mode: Mode, subject: &'static str) {
        let mut row = serde_json::json!({
            "bench": "contention",
            "row": format!("hand_overs_per_second/{mode}/{subject}"),
            "value": self.median(mode, subject, |round| round.handed),
            "ratio": self.ratio(mode, subject, |round| round.handed),
            "acquired_per_second": self.median(mode, subject, |round| round.acquired),
            "acquired_ratio": self.ratio(mode, subject, |round| round.acquired),
        });
        for (head, value, _) in columns(mode) {
            row[key(head)] = self.median(mode, subject, value).into();
        }
        println!("{row}");
    }
}

fn columns(mode: Mode) -> Vec<(&'static str, Value, usize)> {
    let further = if mode.hold_ms > 0 { &OF_SECTIONS[..] } else { &[] };
    [&COLUMNS[..], further].concat()
}

/// The median, of numbers that are some.
fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    Some(Spread::of(values).median).filter(|median| median.is_finite())
}
