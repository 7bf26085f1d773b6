use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::{node::QuorumNode, store::Inner};
use crate::{clock::Instant, types::LockName};

/// What time it is at a node, as far as it has told: ballots follow it, and not the time of day here, which may
/// be wrong.
#[derive(Debug, Default)]
pub(crate) struct NodeTime {
    /// What it was there when the clock of this process began, in microseconds since the Unix epoch; 0 if
    /// that is not known.
    origin: AtomicU64,
}

impl NodeTime {
    fn origin(&self) -> Option<u64> {
        Some(self.origin.load(Ordering::Relaxed)).filter(|origin| *origin != 0)
    }

    /// A node has told its time, in answer to what was `sent` and `heard` then; `here` is the time of day by
    /// the clock of this process.
    fn learn(&self, told: u64, here: u64, sent: Instant, heard: Instant) {
        let known = self.origin().unwrap_or_else(|| here.saturating_sub(micros(heard)));
        self.origin.store(origin(known, told, sent, heard).max(1), Ordering::Relaxed);
    }
}

/// What a node's time was when the clock of this process began: what is known, as long as that can be right.
fn origin(known: u64, told: u64, sent: Instant, heard: Instant) -> u64 {
    let (least, most) = (told.saturating_sub(micros(heard)), told.saturating_sub(micros(sent)));
    known.clamp(least, most.max(least))
}

fn micros(at: Instant) -> u64 {
    in_micros(at.since_origin())
}

fn in_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl<N: QuorumNode> Inner<N> {
    /// The time for ballots about a lock, in microseconds since the Unix epoch: that of the node at which all who
    /// ask for the lock begin, so that they agree about it; if it has not told its time, that of the next one
    /// that has; at first that of the process.
    pub(crate) fn micros(&self, name: &LockName) -> u64 {
        let (start, nodes) = (self.start_of(name), self.nodes.len());
        let mut in_turn = (start..start + nodes).map(|node| &self.times[node % nodes]);
        match in_turn.find_map(NodeTime::origin) {
            Some(origin) => origin.saturating_add(micros(self.clock.now())),
            None => in_micros(self.clock.unix_time()),
        }
    }

    /// A node has told its time.
    pub(crate) fn learn_time(&self, node: usize, told: u64, sent: Instant, heard: Instant) {
        self.times[node].learn(told, in_micros(self.clock.unix_time()), sent, heard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    #[test]
    fn a_time_that_can_be_right_is_kept_and_another_one_moved_no_farther_than_it_has_to() {
        // It told 9 s between 1 s and 3 s here: when the clock began here, it was between 6 s and 8 s there.
        let origin = |known| origin(known, 9_000_000, at(1_000), at(3_000));
        assert_eq!(origin(7_000_000), 7_000_000);
        assert_eq!(origin(60_000_000), 8_000_000);
        assert_eq!(origin(0), 6_000_000);
    }

    #[test]
    fn a_node_is_believed_at_first_as_far_as_the_clock_here_may_be_wrong() {
        let time = NodeTime::default();
        assert_eq!(time.origin(), None);
        time.learn(9_000_000, 69_000_000, at(1_000), at(3_000));
        assert_eq!(time.origin(), Some(8_000_000));
        time.learn(9_500_000, 0, at(3_000), at(3_100));
        assert_eq!(time.origin(), Some(6_500_000), "it has stepped back");
    }
}
