use std::{cmp::Reverse, collections::BTreeMap};

use crate::{figures::Spread, round::Round, subjects::Subject};

/// The rounds of all subjects, by kind of runtime and number of tasks.
#[derive(Debug, Default)]
pub(crate) struct Report(BTreeMap<Row, BTreeMap<Subject, Vec<Round>>>);

/// The kind of runtime, multi-threaded first, and the number of tasks.
type Row = (Reverse<&'static str>, usize);

/// What is measured, and what a machine calls it.
const VALUES: [(&str, Value); 4] = [
    ("pairs_per_second", |round| round.pairs_per_second),
    ("client_micros_per_pair", |round| round.client_micros),
    ("server_micros_per_pair", |round| round.server_micros),
    ("p99_micros", |round| round.p99),
];

/// One of the values of a round.
type Value = fn(&Round) -> f64;

impl Report {
    /// Adds a round. All subjects have a round before one of them has the next.
    pub(crate) fn add(&mut self, kind: &'static str, tasks: usize, subject: Subject, round: Round) {
        let rows = self.0.entry((Reverse(kind), tasks)).or_default();
        rows.entry(subject).or_default().push(round);
    }

    /// Prints a table for people, then a line of JSON per row for machines.
    pub(crate) fn print(&self) {
        println!("uncontended acquire + release; medians of interleaved rounds (least..most)\n");
        println!(
            "{:<15} {:>5}  {:<14}  {:>24}  {:>8}  {:>9}  {:>9}  {:>7}  {:>7}",
            "runtime",
            "tasks",
            "",
            "pairs/s",
            "× rslock",
            "client µs",
            "server µs",
            "p50 µs",
            "p99 µs"
        );
        for ((Reverse(kind), tasks), subjects) in &self.0 {
            for (subject, rounds) in subjects {
                let speed = Spread::of(rounds.iter().map(|round| round.pairs_per_second));
                let median = |value: Value| Spread::of(rounds.iter().map(value)).median;
                println!(
                    "{kind:<15} {tasks:>5}  {:<14}  {:>24}  {:>8.2}  {:>9.1}  {:>9.1}  {:>7.0}  {:>7.0}",
                    subject.name(),
                    speed.shown(0),
                    ratio(subjects, *subject, Subject::Rslock, |round| round.pairs_per_second),
                    median(|round| round.client_micros),
                    median(|round| round.server_micros),
                    median(|round| round.p50),
                    median(|round| round.p99),
                );
            }
            println!();
        }
        println!(
            "µs: processor time per pair, of the client and of the server; p50 and p99: how long"
        );
        println!(
            "a pair takes. × rslock: median of the ratios of two rounds that ran side by side.\n"
        );
        self.print_json();
    }

    /// Leasehold's values, with the ratio to every other subject.
    fn print_json(&self) {
        for ((Reverse(kind), tasks), subjects) in &self.0 {
            let Some(rounds) = subjects.get(&Subject::Leasehold) else { continue };
            for (what, value) in VALUES {
                for other in Subject::ALL.into_iter().filter(|other| *other != Subject::Leasehold) {
                    let line = serde_json::json!({
                        "bench": "acquire_release",
                        "row": format!("{what}/{kind}/{tasks}/{}", other.name()),
                        "value": Spread::of(rounds.iter().map(value)).median,
                        "ratio": ratio(subjects, Subject::Leasehold, other, value),
                    });
                    println!("{line}");
                }
            }
        }
    }
}

/// The median of the ratios of a subject to another one, round by round.
fn ratio(
    subjects: &BTreeMap<Subject, Vec<Round>>,
    one: Subject,
    other: Subject,
    value: Value,
) -> f64 {
    let of = |subject| subjects.get(&subject).map_or(&[][..], Vec::as_slice).iter().map(value);
    Spread::of(of(one).zip(of(other)).map(|(one, other)| one / other)).median
}
