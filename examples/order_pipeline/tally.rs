use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one copy of the program counted, or several together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) classes: BTreeMap<String, ClassTally>,
    /// Writes that a gate refused for their stale fence, planned or not.
    pub(crate) refused: u64,
    /// Workers that stalled past their lease, as planned.
    pub(crate) stalls: u64,
    /// Of their late writes, those that the gate refused.
    pub(crate) late_refused: u64,
    /// Workers that stalled and would have known, had they looked.
    pub(crate) told: u64,
    /// Orders that were left to another holder because the lease was lost.
    pub(crate) taken_over: u64,
    /// Re-entries that did not have the fence of their caller.
    pub(crate) other_fence: u64,
}

/// The part of the locks of one class.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ClassTally {
    pub(crate) leases: u64,
    pub(crate) reentries: u64,
    pub(crate) contended: u64,
    pub(crate) renewals: u64,
    /// Waits for a lease, in microseconds.
    pub(crate) waits_us: Vec<u64>,
}

impl Tally {
    pub(crate) fn class(&mut self, class: &str) -> &mut ClassTally {
        self.classes.entry(class.to_owned()).or_default()
    }

    /// The sum over all classes.
    pub(crate) fn sum(&self, part: impl Fn(&ClassTally) -> u64) -> u64 {
        self.classes.values().map(part).sum()
    }

    /// The leases of articles, each with a fence of its own.
    pub(crate) fn fences(&self) -> u64 {
        ["hot", "cold"].iter().filter_map(|&class| self.classes.get(class)).map(|c| c.leases).sum()
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (class, tally) in other.classes {
            let sum = self.class(&class);
            sum.leases += tally.leases;
            sum.reentries += tally.reentries;
            sum.contended += tally.contended;
            sum.renewals += tally.renewals;
            sum.waits_us.extend(tally.waits_us);
        }
        self.refused += other.refused;
        self.stalls += other.stalls;
        self.late_refused += other.late_refused;
        self.told += other.told;
        self.taken_over += other.taken_over;
        self.other_fence += other.other_fence;
    }
}

impl ClassTally {
    /// The wait that a share of all waits did not exceed, in microseconds.
    ///
    /// By nearest rank; `percent` is at most 100.
    pub(crate) fn wait_us(&self, percent: usize) -> u64 {
        let mut waits = self.waits_us.clone();
        waits.sort_unstable();
        let rank = (waits.len() * percent).div_ceil(100).max(1);
        waits.get(rank - 1).copied().unwrap_or_default()
    }
}
