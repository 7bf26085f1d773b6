use std::{collections::BTreeMap, fmt, time::Duration};

use leasehold::Fence;
use leasehold_testkit::Event;

use super::{kind::Kind, round::Round};

/// What was seen in many rounds.
#[derive(Debug, Default)]
pub(super) struct Report {
    times: BTreeMap<Kind, Times>,
    increments: u64,
    refused: usize,
    lost: usize,
    /// The highest fence of each lock.
    highest: BTreeMap<&'static str, Fence>,
    control: String,
}

/// How long it took, failover by failover.
#[derive(Debug, Default)]
struct Times {
    pauses: Vec<Duration>,
    noticed: Vec<Duration>,
    promoted: Vec<Duration>,
}

impl Report {
    /// Checks a round, and adds what was seen.
    pub(super) fn add(&mut self, kind: Kind, lock: &'static str, round: &Round) {
        let history = &round.finished.history;
        let summary = history.check().unwrap_or_else(|found| panic!("{kind}: {found:#?}"));
        if kind != Kind::Replaced {
            assert!(summary.refused > 0 && summary.lost > 0, "{kind}: {summary:?}");
        }
        self.compare(lock, &history.events());
        self.increments += summary.increments;
        self.refused += summary.refused;
        self.lost += summary.lost;
        let times = self.times.entry(kind).or_default();
        times.pauses.push(round.pause);
        times.noticed.extend(round.noticed);
        times.promoted.push(round.promoted);
    }

    /// Fences of a lock grow from round to round.
    fn compare(&mut self, lock: &'static str, events: &[Event]) {
        let fences = events.iter().filter_map(|event| match event {
            Event::Granted { fence, .. } => Some(*fence),
            _ => None,
        });
        let lowest = fences.clone().min().expect("somebody had the lock");
        let highest = fences.max().expect("somebody had the lock");
        if let Some(before) = self.highest.insert(lock, highest) {
            assert!(before < lowest, "{lock}: {lowest} was granted after {before}");
        }
    }

    /// Adds the damage of the control.
    pub(super) fn control(&mut self, damage: String) {
        self.control = damage;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { times, increments, refused, lost, control, .. } = self;
        let failovers: usize = times.values().map(|times| times.pauses.len()).sum();
        write!(
            f,
            "{failovers} failovers: 0 fences repeated or went back, 0 stale writes accepted ({refused} refused), \
             0 of {increments} increments lost, {lost} losses reported; control without a gate: {control}"
        )?;
        for (kind, times) in times {
            write!(f, "\n  {kind} ({}): {times}", times.pauses.len())?;
        }
        Ok(())
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no grant for {}", median_and_worst(self.pauses.clone()))?;
        if !self.noticed.is_empty() {
            write!(f, "; taken for dead after {}", median_and_worst(self.noticed.clone()))?;
        }
        write!(f, "; another master after {}", median_and_worst(self.promoted.clone()))
    }
}

fn median_and_worst(mut all: Vec<Duration>) -> String {
    all.sort_unstable();
    let at = |index: usize| all.get(index).copied().unwrap_or_default();
    format!("median {:.2?}, worst {:.2?}", at(all.len() / 2), at(all.len().saturating_sub(1)))
}
