use std::time::{Duration, Instant};

use crate::usage::{count, micros};

/// An acquisition within the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Which lock.
    pub(super) lock: usize,
    pub(super) got: Instant,
    pub(super) waited: Duration,
    pub(super) runtime: usize,
    pub(super) task: usize,
}

/// What all tasks of a round did.
#[derive(Debug)]
pub(super) struct Tally {
    /// Acquisitions by another task than the one before, of the same lock.
    pub(super) handed: f64,
    /// Acquisitions by another runtime than the one before.
    pub(super) between: f64,
    /// How long acquires took, in microseconds: percentiles 50 and 99.
    pub(super) waits: [f64; 2],
}

impl Tally {
    /// All threads are of one process, so their instants tell the order.
    pub(super) fn of(mut turns: Vec<Turn>) -> Self {
        turns.sort_unstable_by_key(|turn| (turn.lock, turn.got));
        let pairs = || turns.windows(2).filter(|pair| pair[0].lock == pair[1].lock);
        let other = |who: fn(&Turn) -> (usize, usize)| {
            count(pairs().filter(|pair| who(&pair[0]) != who(&pair[1])).count())
        };
        let handed = other(|turn| (turn.runtime, turn.task));
        let between = other(|turn| (turn.runtime, 0));
        let mut waits: Vec<Duration> = turns.iter().map(|turn| turn.waited).collect();
        waits.sort_unstable();
        let at = |percent| waits.get(waits.len() * percent / 100).copied().map_or(f64::NAN, micros);
        Self { handed, between, waits: [at(50), at(99)] }
    }
}
