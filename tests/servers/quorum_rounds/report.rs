use std::{collections::BTreeMap, fmt, time::Duration};

use super::{campaign::Campaign, fault::Fault};

/// What was seen in all rounds.
#[derive(Debug, Default)]
pub(super) struct Report {
    rounds: usize,
    increments: u64,
    refused: usize,
    lost: usize,
    /// How long it took until work went on.
    pauses: BTreeMap<Fault, Vec<Duration>>,
}

impl Report {
    /// Checks some rounds, and adds what was seen.
    pub(super) fn add(&mut self, seed: u64, campaign: Campaign) {
        let Campaign { finished, rounds } = campaign;
        let summary = finished.history.check().unwrap_or_else(|found| {
            panic!("seed {seed}, {rounds:?}: {found:#?}");
        });
        finished.right();
        self.rounds += rounds.len();
        self.increments += summary.increments;
        self.refused += summary.refused;
        self.lost += summary.lost;
        for (fault, pause) in rounds {
            self.pauses.entry(fault).or_default().push(pause);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, increments, refused, lost, pauses } = self;
        write!(
            f,
            "{rounds} rounds: 0 fences repeated or went back, 0 stale writes accepted ({refused} refused), \
             0 of {increments} increments lost, {lost} losses reported"
        )?;
        for (fault, pauses) in pauses {
            let mut pauses = pauses.clone();
            pauses.sort_unstable();
            let at = |index: usize| pauses.get(index).copied().unwrap_or_default();
            let (median, worst) = (at(pauses.len() / 2), at(pauses.len().saturating_sub(1)));
            write!(
                f,
                "\n  {fault} ({}): went on after median {median:.2?}, worst {worst:.2?}",
                pauses.len()
            )?;
        }
        Ok(())
    }
}
