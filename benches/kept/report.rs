use std::collections::BTreeMap;

use crate::{
    failures::Failures,
    figures::{Spread, cells, key, shown},
    round::{Round, Value},
    scenario::Scenario,
    subjects::Subject,
    targets,
};

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). acquired/s: acquisitions, each with its release. ×
this: that of the first row divided by this one's, median of the rounds' ratios. handed/s:
acquisitions by another process than the one before. cmd, CPU µs: commands that clients sent and
processor time of all clients, for an acquisition. p50, p99: how long an acquire takes; handed p99:
one by another process than the one before.";

/// The rounds of all subjects.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rounds: BTreeMap<Scenario, BTreeMap<Subject, Vec<Round>>>,
    pub(crate) failures: Failures,
}

/// The columns after the rates: head, value, digits after the point.
const COLUMNS: [(&str, Value, usize); 6] = [
    ("handed/s", |round| round.handed, 0),
    ("cmd", |round| round.commands, 4),
    ("CPU µs", |round| round.client_micros, 2),
    ("p50 µs", |round| round.p50, 1),
    ("p99 µs", |round| round.p99, 1),
    ("handed p99 µs", |round| round.handed_p99, 1),
];

/// How fast locks were taken.
const ACQUIRED: Value = |round| round.acquired;

impl Report {
    /// Adds a round of all subjects.
    pub(crate) fn add(&mut self, scenario: Scenario, round: Vec<(Subject, Round)>) {
        for (subject, round) in round {
            let subjects = self.rounds.entry(scenario).or_default();
            subjects.entry(subject).or_default().push(round);
        }
    }

    /// Prints the table of a scenario.
    pub(crate) fn print_table(&self, scenario: Scenario) {
        println!("\n{} ({scenario})\n", scenario.describe());
        let heads = cells(14, COLUMNS.iter().map(|(head, ..)| (*head).into()));
        println!("{:<12}{:>30}{:>9}{heads}", "", "acquired/s", "× this");
        for &subject in scenario.subjects() {
            let own = |value| Spread::of(self.values(scenario, subject, value));
            let others = COLUMNS.iter().map(|&(_, value, digits)| shown(own(value).median, digits));
            let others = cells(14, others);
            println!(
                "{:<12}{:>30}{:>9}{others}",
                subject.name(),
                own(ACQUIRED).shown(0),
                shown(self.ratio(scenario, subject, ACQUIRED).median, 2),
            );
        }
    }

    /// Prints which targets were reached, then a line of JSON per row for machines.
    pub(crate) fn print_end(&self) {
        println!("\n{LEGEND}\n\ntargets\n");
        for &scenario in self.rounds.keys() {
            for target in targets::of(scenario) {
                let spread = match target.by {
                    Some(subject) => self.ratio(scenario, subject, target.value),
                    None => Spread::of(self.values(scenario, scenario.subjects()[0], target.value)),
                };
                let verdict = target.goal.verdict(spread.median);
                let row = format!("{scenario}: {}", target.what);
                println!("{row:<45}{:>28}   {verdict}", spread.shown(4));
            }
        }
        self.failures.print();
        for (&scenario, subjects) in &self.rounds {
            for &subject in subjects.keys() {
                self.print_json(scenario, subject);
            }
        }
    }

    fn print_json(&self, scenario: Scenario, subject: Subject) {
        let mut row = serde_json::json!({
            "bench": "kept",
            "row": format!("acquired_per_second/{scenario}/{}", subject.name()),
            "value": Spread::of(self.values(scenario, subject, ACQUIRED)).median,
            "ratio": self.ratio(scenario, subject, ACQUIRED).median,
        });
        for (head, value, _) in COLUMNS {
            let key = key(head);
            row[key.clone()] = Spread::of(self.values(scenario, subject, value)).median.into();
            row[key + "_ratio"] = self.ratio(scenario, subject, value).median.into();
        }
        println!("{row}");
    }

    fn values(
        &self,
        scenario: Scenario,
        subject: Subject,
        value: Value,
    ) -> impl Iterator<Item = f64> {
        let rounds = self.rounds.get(&scenario).and_then(|subjects| subjects.get(&subject));
        rounds.map_or(&[][..], Vec::as_slice).iter().map(value)
    }

    /// The ratios of the first subject of a scenario to another one, round by round.
    fn ratio(&self, scenario: Scenario, subject: Subject, value: Value) -> Spread {
        let first = self.values(scenario, scenario.subjects()[0], value);
        let others = self.values(scenario, subject, value);
        Spread::of(first.zip(others).map(|(first, other)| first / other))
    }
}
