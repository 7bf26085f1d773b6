use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use leasehold_core::Instant;

use super::liveness::nanos;
use crate::durations::PROOF_LASTS;

/// When the server of a connection was last known to be a master.
///
/// A master that becomes a replica keeps its connections, and with `replica-read-only no` it takes
/// their writes. So a call that is sent when the proof is old asks the server itself, before it does
/// anything else (`lua/commands/master.lua`). A connection in use pays for that twice a second.
#[derive(Debug)]
// ADR 0033
pub(super) struct Proof {
    /// When the last question was sent to which it answered that it is a master, in nanoseconds of the clock.
    at: AtomicU64,
}

impl Proof {
    /// The proof of a question that was sent at this time.
    pub(super) fn new(asked_at: Instant) -> Self {
        Self { at: nanos(asked_at.since_origin()).into() }
    }

    /// Whether the call that is sent now has to ask.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let at = Instant::at(Duration::from_nanos(self.at.load(Ordering::Relaxed)));
        now.saturating_since(at) >= PROOF_LASTS
    }

    /// The server has answered a question that was sent at this time: it is a master.
    pub(super) fn given(&self, asked_at: Instant) {
        self.at.fetch_max(nanos(asked_at.since_origin()), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    #[test]
    fn a_proof_counts_for_half_a_second_from_its_question_on() {
        let proof = Proof::new(at(1000));
        assert!(!proof.is_due(at(1499)) && proof.is_due(at(1500)));
        proof.given(at(1600));
        assert!(!proof.is_due(at(2099)) && proof.is_due(at(2100)));
        proof.given(at(1400));
        assert!(!proof.is_due(at(2099)), "an answer that comes late undoes nothing");
    }
}
