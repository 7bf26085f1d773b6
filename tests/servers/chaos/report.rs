use std::{collections::BTreeMap, fmt};

use leasehold_testkit::History;

use super::{plan::Plan, tally::Tally, values::Sum};

/// The report of a run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) tally: Tally,
    /// How often each fault struck.
    pub(crate) strikes: BTreeMap<&'static str, u64>,
    /// How many messages the proxy struck, of how many.
    pub(crate) struck: u64,
    pub(crate) messages: u64,
    /// How each number ended.
    pub(crate) sums: Vec<Sum>,
    /// What was seen of each lock; empty unless it was told.
    pub(crate) histories: Vec<History>,
    /// The memory of each process over time, in KiB.
    pub(crate) memory: Vec<Vec<u64>>,
    pub(crate) left: Left,
}

/// What is left when all processes have ended.
#[derive(Debug)]
pub(crate) struct Left {
    /// Keys of leases and queues that did not go.
    pub(crate) places: Vec<String>,
    /// Keys without a time to live.
    pub(crate) immortal: Vec<String>,
    pub(crate) connections: u64,
    /// What each process says of itself.
    pub(crate) processes: Vec<String>,
}

impl Report {
    pub(crate) fn accepted(&self) -> u64 {
        self.sums.iter().map(|sum| sum.accepted).sum()
    }

    pub(crate) fn stale_accepted(&self) -> u64 {
        self.sums.iter().map(|sum| sum.stale).sum()
    }

    pub(crate) fn lost_increments(&self) -> u64 {
        self.sums.iter().map(|sum| sum.accepted.saturating_sub(sum.shown)).sum()
    }

    /// Asserts what holds under every fault.
    pub(crate) fn assert_right(&self, plan: &Plan) {
        let seed = plan.seed;
        assert_eq!((self.stale_accepted(), self.lost_increments()), (0, 0), "seed {seed}");
        assert!(self.accepted() > 0 && !self.strikes.is_empty(), "seed {seed}: nothing happened");
        for history in &self.histories {
            let checked = history.check_with_lost_turns();
            checked.unwrap_or_else(|found| panic!("seed {seed}: {found:#?}"));
        }
        assert_eq!(self.left.places, [""; 0], "seed {seed}");
        assert_eq!(self.left.immortal, [""; 0], "seed {seed}");
        assert_eq!(self.left.connections, 0, "seed {seed}");
        // A short run has not come to rest.
        let (early, late) = self.memory();
        let is_flat = late <= early + early / 4 + 16;
        assert!(
            self.seconds < 60 || is_flat,
            "seed {seed}: memory grew from {early} to {late} MiB"
        );
        for left in &self.left.processes {
            assert_eq!(left, "held=0 unreleased=0 tasks=0", "seed {seed}");
        }
    }

    /// Memory in MiB, all processes that lived to the end: after a quarter of the run, and at last.
    fn memory(&self) -> (u64, u64) {
        let at = |part: fn(&[u64]) -> Option<&u64>| {
            let kib: u64 = self.memory.iter().filter_map(|kib| part(kib)).sum();
            kib / 1024
        };
        (at(|kib| kib.get(kib.len() / 4)), at(<[u64]>::last))
    }
}

/// As a table.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row =
            |what: &str, value: &dyn fmt::Display| writeln!(f, "  {what:<28} {value:>12}");
        row("seed", &self.seed)?;
        row("seconds", &self.seconds)?;
        for (what, count) in self.tally.iter() {
            row(what, &count)?;
        }
        for (what, count) in &self.strikes {
            row(what, count)?;
        }
        row("messages", &self.messages)?;
        row("messages struck", &self.struck)?;
        row("histories checked", &self.histories.len())?;
        row("writes accepted", &self.accepted())?;
        row("stale writes refused", &(self.tally.of("refused") + self.tally.of("shut-out")))?;
        row("stale writes accepted", &self.stale_accepted())?;
        row("increments lost", &self.lost_increments())?;
        let (early, late) = self.memory();
        row("memory after a quarter, MiB", &early)?;
        row("memory at the end, MiB", &late)
    }
}
