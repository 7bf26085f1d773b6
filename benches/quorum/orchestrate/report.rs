use std::{collections::BTreeMap, fmt};

use super::{Load, Site, Subject, round::Round, targets};
use crate::{
    failures::Failures,
    figures::{Spread, shown},
};

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). rate: pairs of acquire and release per second where each
task has its own lock; hand-overs per second, acquisitions by another task than the one before, where
all want one. × this: Leasehold's rate on the quorum divided by this row's, median of the rounds'
ratios. p50, p99: how long an acquire takes. cmd, CPU µs: commands that clients sent to all servers,
and processor time of all client processes, for each of those. All peers but those named default pause
for 0 to 4 ms between two tries. stuck: tasks that had not got the lock five seconds after the window,
when nobody wanted it any more. leasehold-one is Leasehold on one of the servers alone; leasehold-kept keeps idle locks for a second.";

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) site: Site,
    pub(super) load: Load,
    pub(super) subject: Subject,
}

impl Key {
    /// All rows, in the order of the tables.
    pub(super) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for site in Site::ALL {
            for load in Load::ALL {
                let runs = Subject::ALL.into_iter().filter(|subject| subject.runs(site, load));
                all.extend(runs.map(|subject| Self { site, load, subject }));
            }
        }
        all
    }

    /// What a round came to, in a second.
    pub(super) fn rate(self, round: &Round) -> f64 {
        if self.load.has_own_names() { round.acquired } else { round.handed }
    }
}

/// As rows are named.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.site, self.load, self.subject)
    }
}

/// Rounds by row.
#[derive(Debug, Default)]
pub(super) struct Report {
    rounds: BTreeMap<Key, BTreeMap<usize, Round>>,
    pub(super) failures: Failures,
}

impl Report {
    /// Adds what a subject came to in a round.
    pub(super) fn add(&mut self, key: Key, number: usize, round: Round) {
        // That tasks of a peer wait until all others have left is one of its figures.
        if round.stuck > 0 && key.subject == Subject::Leasehold {
            self.failures.add(format!("{key}: {} tasks waited for ever", round.stuck));
        }
        self.rounds.entry(key).or_default().insert(number, round);
    }

    /// The median of a row's rounds.
    pub(super) fn median(&self, key: Key, value: impl Fn(&Round) -> f64) -> Option<f64> {
        middle(self.rounds.get(&key)?.values().map(value))
    }

    /// Leasehold's rate on the same servers divided by a row's, the median of the rounds.
    pub(super) fn ratio(&self, key: Key) -> Option<f64> {
        self.ratio_to(Key { subject: Subject::Leasehold, ..key }, key)
    }

    /// A row's rate divided by another's, the median of the rounds.
    pub(super) fn ratio_to(&self, key: Key, other: Key) -> Option<f64> {
        let (own, others) = (self.rounds.get(&key)?, self.rounds.get(&other)?);
        let of = |(number, round)| Some(key.rate(own.get(number)?) / other.rate(round));
        middle(others.iter().filter_map(of))
    }

    /// Prints tables for people, then a line of JSON per row for machines.
    pub(super) fn print(&self) {
        println!("a quorum of independent servers\n\n{LEGEND}");
        let mut before = None;
        for (key, rounds) in &self.rounds {
            let place = (key.site, key.load);
            if before != Some(place) {
                print_head(*key);
            }
            before = Some(place);
            self.print_row(*key, rounds);
        }
        targets::print(self);
        self.failures.print();
        for key in self.rounds.keys() {
            self.print_json(*key);
        }
    }

    fn print_row(&self, key: Key, rounds: &BTreeMap<usize, Round>) {
        let spread = Spread::of(rounds.values().map(|round| key.rate(round))).shown(0);
        println!(
            "{:<24}{spread:>28}{:>10}{:>11}{:>11}{:>9}{:>9}{:>8}",
            key.subject.name(),
            shown(self.ratio(key), 2),
            shown(self.median(key, |round| round.wait_p50_us), 0),
            shown(self.median(key, |round| round.wait_p99_us), 0),
            shown(self.median(key, |round| round.commands / key.rate(round)), 2),
            shown(self.median(key, |round| round.cpu_us / key.rate(round)), 1),
            rounds.values().map(|round| round.stuck).sum::<usize>(),
        );
    }

    fn print_json(&self, key: Key) {
        let unit = if key.load.has_own_names() { "pairs" } else { "hand_overs" };
        let row = serde_json::json!({
            "bench": "quorum",
            "row": format!("{unit}_per_second/{key}"),
            "value": self.median(key, |round| key.rate(round)),
            "ratio": self.ratio(key),
            "acquired_per_second": self.median(key, |round| round.acquired),
            "p50_us": self.median(key, |round| round.wait_p50_us),
            "p99_us": self.median(key, |round| round.wait_p99_us),
            "commands": self.median(key, |round| round.commands / key.rate(round)),
            "cpu_us": self.median(key, |round| round.cpu_us / key.rate(round)),
        });
        println!("{row}");
    }
}

fn print_head(key: Key) {
    let Key { site, load, .. } = key;
    println!("\n{site}, {load}\n");
    println!(
        "{:<24}{:>28}{:>10}{:>11}{:>11}{:>9}{:>9}{:>8}",
        "", "rate/s", "× this", "p50 µs", "p99 µs", "cmd", "CPU µs", "stuck"
    );
}

/// The median, of numbers that are some.
fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    Some(Spread::of(values).median).filter(|median| median.is_finite())
}
