//! A table of what was measured, for people and for machines.

use std::fmt::Display;

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Which servers.
    pub(crate) site: String,
    /// What is done there.
    pub(crate) load: String,
    /// Who does it.
    pub(crate) subject: String,
}

impl Key {
    pub(crate) fn new(site: &dyn Display, load: &dyn Display, subject: &str) -> Self {
        Self { site: site.to_string(), load: load.to_string(), subject: subject.to_string() }
    }
}

/// A column: its head, what a machine calls it, and how many digits it has after the point.
pub(crate) type Column = (&'static str, &'static str, usize);

/// What is measured in a part, round by round.
#[derive(Debug)]
pub(crate) struct Table {
    /// What a machine calls the part.
    pub(crate) part: &'static str,
    title: &'static str,
    /// The first has its spread, and ratios.
    columns: &'static [Column],
    /// What the ratio is, or nothing if there is none.
    ratio: Option<&'static str>,
    legend: &'static str,
    rows: Vec<(Key, Vec<Vec<f64>>)>,
}

impl Table {
    pub(crate) fn new(
        part: &'static str,
        title: &'static str,
        columns: &'static [Column],
        ratio: Option<&'static str>,
        legend: &'static str,
    ) -> Self {
        Self { part, title, columns, ratio, legend, rows: Vec::new() }
    }

    /// Adds a round of a row: a value for each column. All rows have a round before one of them has
    /// the next.
    pub(crate) fn add(&mut self, key: Key, values: Vec<f64>) {
        match self.rows.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rounds)) => rounds.push(values),
            None => self.rows.push((key, vec![values])),
        }
    }

    /// A column of a row, round by round.
    pub(crate) fn values(&self, key: &Key, column: &str) -> Vec<f64> {
        let at = self.columns.iter().position(|(_, name, _)| *name == column);
        let row = self.rows.iter().find(|(known, _)| known == key);
        let (Some(at), Some((_, rounds))) = (at, row) else { return Vec::new() };
        rounds.iter().map(|values| values[at]).collect()
    }

    /// What the first column is to a machine.
    pub(crate) fn first_column(&self) -> &'static str {
        self.columns[0].1
    }

    /// The rows of a site.
    pub(crate) fn keys_of(&self, site: &dyn Display) -> Vec<Key> {
        let site = site.to_string();
        let keys = self.rows.iter().map(|(key, _)| key);
        keys.filter(|key| key.site == site).cloned().collect()
    }

    /// Prints a table for people.
    pub(crate) fn print(&self) {
        println!("\n{}\n", self.title);
        let (first, others) = self.columns.split_first().unwrap_or((&("", "", 0), &[]));
        let ratio = self.ratio.map(|head| format!("{head:>11}")).unwrap_or_default();
        let heads = cells(others.iter().map(|(head, ..)| (*head).into()));
        println!("{:<18}{:<30}{:<24}{:>30}{ratio}{heads}", "", "", "", first.0);
        let mut before = None;
        for (key, rounds) in &self.rows {
            let place = (&key.site, &key.load);
            if before.is_some_and(|before| before != place) && self.ratio.is_some() {
                println!();
            }
            before = Some(place);
            let value = spread(rounds, 0).shown(first.2);
            let ratio = self.ratio.map(|_| format!("{:>11}", shown(self.against(key), 2)));
            let cell = |(at, column): (usize, &Column)| shown(spread(rounds, at).median, column.2);
            let others = cells(self.columns.iter().enumerate().skip(1).map(cell));
            let Key { site, load, subject } = key;
            println!(
                "{site:<18}{load:<30}{subject:<24}{value:>30}{}{others}",
                ratio.unwrap_or_default()
            );
        }
        println!("\n{}", self.legend);
    }

    /// Prints a line of JSON for each row.
    pub(crate) fn print_json(&self) {
        for (key, rounds) in &self.rows {
            let Key { site, load, subject } = key;
            let mut line = serde_json::json!({
                "bench": env!("CARGO_CRATE_NAME"),
                "row": format!("{}/{site}/{load}/{subject}", self.columns[0].1),
                "value": spread(rounds, 0).median,
            });
            if self.ratio.is_some() {
                line["ratio"] = self.against(key).into();
            }
            for (at, (_, name, _)) in self.columns.iter().enumerate().skip(1) {
                line[*name] = spread(rounds, at).median.into();
            }
            println!("{line}");
        }
    }

    /// The median of a column of a row.
    pub(crate) fn median(&self, key: &Key, column: &str) -> Option<f64> {
        let median = Spread::of(self.values(key, column).into_iter()).median;
        Some(median).filter(|median| median.is_finite())
    }

    /// A column of a row divided by that of another one, round by round.
    pub(crate) fn ratio(&self, one: &Key, other: &Key, column: &str) -> Spread {
        let pairs = self.values(one, column).into_iter().zip(self.values(other, column));
        Spread::of(pairs.map(|(one, other)| one / other))
    }

    /// The first column of the first row of the same place and load, divided by that of a row: the
    /// median of the rounds.
    fn against(&self, key: &Key) -> f64 {
        let is_beside =
            |(known, _): &&(Key, _)| (&known.site, &known.load) == (&key.site, &key.load);
        let Some((first, _)) = self.rows.iter().find(is_beside) else { return f64::NAN };
        self.ratio(first, key, self.first_column()).median
    }
}

/// A column, of the rounds of a row.
fn spread(rounds: &[Vec<f64>], at: usize) -> Spread {
    Spread::of(rounds.iter().map(|values| values[at]))
}

/// Median, least and most of some values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    /// Those of the values that are numbers.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(values.len() / 2),
            least: at(0),
            most: at(values.len().saturating_sub(1)),
        }
    }

    /// All three, with so many digits after the point.
    pub(crate) fn shown(&self, digits: usize) -> String {
        if self.median.is_nan() {
            return "–".into();
        }
        format!("{:.digits$} ({:.digits$}..{:.digits$})", self.median, self.least, self.most)
    }
}

/// A value with so many digits after the point, unless there is none.
fn shown(value: f64, digits: usize) -> String {
    if value.is_nan() { "–".into() } else { format!("{value:.digits$}") }
}

fn cells(texts: impl Iterator<Item = String>) -> String {
    texts.fold(String::new(), |line, text| format!("{line}{text:>13}"))
}
