//! The decisions of the watchdog, for tests that replace one with a wrong one.

use leasehold_core::{Instant, lease::LeaseState};

/// Decisions as plain functions; the real ones by default.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Whether a turn is renewed, by whether a task holds a lease of it.
    pub renews: fn(is_held: bool) -> bool,
    /// What a lease shows, by its own state and the end of belief in its turn.
    pub shows: fn(own: LeaseState, turn_until: Instant, now: Instant) -> LeaseState,
    /// Until when the lock of a lease stays closed, by what its holders asked for.
    pub closes: fn(asked: Option<Instant>) -> Option<Instant>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { renews: |is_held| is_held, shows: |own, _, _| own, closes: |asked| asked }
    }
}
