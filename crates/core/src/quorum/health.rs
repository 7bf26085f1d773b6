use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use super::tally::{MOST_NODES, Nodes, bit};
use crate::clock::Instant;

/// For how long a node is asked last after its first failure; it doubles with each one in a row.
const SHORTEST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_secs(3);

/// How much longer than usual a node may take before another one is asked in its place.
const HEDGE: u32 = 4;
const SHORTEST_HEDGE: Duration = Duration::from_millis(4);
const LONGEST_HEDGE: Duration = Duration::from_millis(100);

/// Who is asked, in this order: those in good health first, each name from a node of its own on, so that
/// all who ask for a name meet at the same nodes.
pub fn order(start: usize, nodes: usize, unwell: u8) -> [usize; MOST_NODES] {
    let mut order = [0; MOST_NODES];
    let mut at = 0;
    for wanted in [false, true] {
        for node in (0..nodes).map(|step| (start + step) % nodes) {
            if (unwell & bit(node) != 0) == wanted {
                order[at] = node;
                at += 1;
            }
        }
    }
    order
}

/// How well a node has answered of late.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failures: AtomicU32,
    /// Until when it is asked last, in nanoseconds since the clock's origin.
    rests_until: AtomicU64,
    /// How long it takes as a rule, in nanoseconds.
    usual: AtomicU64,
}

impl Health {
    pub(crate) fn on_answer(&self, took: Duration) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.rests_until.store(0, Ordering::Relaxed);
        }
        let (took, usual) = (nanos(took), self.usual.load(Ordering::Relaxed));
        let usual = if usual == 0 { took } else { usual - usual / 8 + took / 8 };
        self.usual.store(usual, Ordering::Relaxed);
    }

    pub(crate) fn on_failure(&self, now: Instant) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(8);
        let rest = (SHORTEST_REST * 2_u32.pow(failures)).min(LONGEST_REST);
        self.rest(now + rest);
    }

    /// It does not vote until then.
    pub(crate) fn rest(&self, until: Instant) {
        self.rests_until.store(nanos(until.since_origin()), Ordering::Relaxed);
    }

    pub(crate) fn is_unwell(&self, now: Instant) -> bool {
        let until = self.rests_until.load(Ordering::Relaxed);
        until != 0 && until > nanos(now.since_origin())
    }

    fn usual(&self) -> Duration {
        Duration::from_nanos(self.usual.load(Ordering::Relaxed))
    }
}

/// The nodes that are to be asked last.
pub(crate) fn unwell(all: &[Health], now: Instant) -> Nodes {
    let each = all.iter().enumerate();
    each.filter(|(_, one)| one.is_unwell(now)).fold(0, |set, (node, _)| set | bit(node))
}

/// After how long another node is asked in place of one that has not answered.
pub(crate) fn hedge(all: &[Health]) -> Duration {
    let usual = all.iter().map(Health::usual).max().unwrap_or_default();
    (SHORTEST_HEDGE + usual * HEDGE).min(LONGEST_HEDGE)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_unwell_are_asked_last() {
        assert_eq!(order(1, 3, 0)[..3], [1, 2, 0]);
        assert_eq!(order(1, 3, 0b010)[..3], [2, 0, 1]);
        assert_eq!(order(4, 5, 0b10001)[..5], [1, 2, 3, 4, 0]);
    }

    #[test]
    fn a_node_rests_for_longer_with_each_failure_and_recovers_with_an_answer() {
        let (health, now) = (Health::default(), Instant::at(Duration::from_secs(9)));
        assert!(!health.is_unwell(now));
        health.on_failure(now);
        assert!(health.is_unwell(now) && !health.is_unwell(now + SHORTEST_REST));
        health.on_failure(now);
        assert!(health.is_unwell(now + SHORTEST_REST));
        health.on_answer(Duration::from_millis(2));
        assert!(!health.is_unwell(now));
        assert_eq!(hedge(&[health]), SHORTEST_HEDGE + Duration::from_millis(8));
    }
}
