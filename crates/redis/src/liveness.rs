use std::{
    mem,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use leasehold_core::{Instant, Mutex, SHORTEST_SILENCE, StoreError};
use tokio::sync::Notify;

use super::classify::unanswered;
use crate::durations::PROOF_LASTS;

/// Counts the servers that a route has led to; a connection of an older one is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Epoch(pub(super) u64);

/// The present epoch of a route.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    now: AtomicU64,
    /// Notified when an epoch ends.
    ended: Notify,
}

impl Epochs {
    /// The epoch in which nothing has changed yet.
    pub(super) const FIRST: Epoch = Epoch(0);

    pub(super) fn now(&self) -> Epoch {
        Epoch(self.now.load(Ordering::Acquire))
    }

    /// Another server is the one that the route leads to: the next epoch begins.
    pub(super) fn advance(&self) -> Epoch {
        let next = Epoch(self.now.fetch_add(1, Ordering::AcqRel) + 1);
        self.ended.notify_waiters();
        next
    }

    /// Returns when an epoch has ended.
    pub(super) async fn left(&self, epoch: Epoch) {
        loop {
            // Made before the look, so that no end is missed.
            let ended = self.ended.notified();
            if self.now() != epoch {
                return;
            }
            ended.await;
        }
    }
}

/// What is known of a connection: when something was read on it last, how long its round trips are, and
/// when its server was last known to be a master.
///
/// A server answers the commands of a connection in their order. So a command without an answer
/// says that the connection is dead, or that the network takes longer than the deadline; what was
/// read meanwhile, and the round trip, tell these apart.
///
/// A master that becomes a replica keeps its connections, and with `replica-read-only no` it takes
/// their writes. So a call that is sent when the proof is old asks the server itself, before it does
/// anything else (`lua/commands/master.lua`). A connection in use pays for that twice a second.
// ADR 0033
pub(super) struct Liveness(Mutex<LivenessState>);

struct LivenessState {
    heard_at: Instant,
    /// The shortest that was seen.
    round_trip: Duration,
    /// When the last question was sent to which the server answered that it is a master.
    proven_at: Instant,
    is_asked: bool,
}

impl Liveness {
    /// The liveness of a connection that was made just now; `proven_at` is when the server was asked
    /// whether it is a master.
    pub(super) fn new(now: Instant, round_trip: Duration, proven_at: Instant) -> Self {
        Self(Mutex::new(LivenessState { heard_at: now, round_trip, proven_at, is_asked: false }))
    }

    /// Whether the call that is sent now has to ask whether the server is a master.
    pub(super) fn needs_proof(&self, now: Instant) -> bool {
        now.saturating_since(self.0.lock().proven_at) >= PROOF_LASTS
    }

    /// The server has answered a question that was sent at this time: it is a master.
    pub(super) fn proven(&self, asked_at: Instant) {
        let mut seen = self.0.lock();
        seen.proven_at = seen.proven_at.max(asked_at);
    }

    /// A command that was sent at `sent_at` was answered at `now`. A shorter round trip replaces
    /// the known one, which may have been measured while many connected at once.
    pub(super) fn answered(&self, sent_at: Instant, now: Instant) {
        let mut seen = self.0.lock();
        seen.heard_at = seen.heard_at.max(now);
        seen.round_trip = seen.round_trip.min(now.saturating_since(sent_at));
    }

    /// Something was read at `now`.
    pub(super) fn heard(&self, now: Instant) {
        let mut seen = self.0.lock();
        seen.heard_at = seen.heard_at.max(now);
    }

    /// Whether something was read after `at`.
    pub(super) fn heard_since(&self, at: Instant) -> bool {
        self.0.lock().heard_at > at
    }

    /// Whether a connection is to be replaced on which a command that was sent at `sent_at` has no
    /// answer at `now`. Otherwise it is asked whether it still works, and used meanwhile.
    pub(super) fn is_dead(&self, sent_at: Instant, now: Instant) -> bool {
        let heard_at = self.0.lock().heard_at;
        let longest = if heard_at > sent_at { self.patience() } else { self.round_trip() * 2 };
        now.saturating_since(heard_at.max(sent_at)) >= longest
    }

    /// How long an answer may take before the connection counts as dead.
    pub(super) fn patience(&self) -> Duration {
        (self.round_trip() * 2).max(SHORTEST_SILENCE)
    }

    /// Whether the caller may send a `PING`, one at a time, until [`done`](Self::done).
    pub(super) fn begin_asking(&self) -> bool {
        !mem::replace(&mut self.0.lock().is_asked, true)
    }

    pub(super) fn done(&self) {
        self.0.lock().is_asked = false;
    }

    /// The error of a command that was sent at `sent_at` and has no answer at `now`, on a connection
    /// that is not dead.
    pub(super) fn unanswered(&self, sent_at: Instant, now: Instant) -> StoreError {
        let (error, waited) = (unanswered(), now.saturating_since(sent_at));
        if waited < self.round_trip() {
            return error.within_a_round_trip(waited, self.round_trip());
        }
        if self.heard_since(sent_at) { error.while_others_were_answered() } else { error }
    }

    /// The shortest that was seen.
    pub(super) fn round_trip(&self) -> Duration {
        self.0.lock().round_trip
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn liveness(round_trip: u64) -> Liveness {
        Liveness::new(at(0), Duration::from_millis(round_trip), at(0))
    }

    #[test]
    fn a_connection_on_which_nothing_is_read_is_given_up_at_the_deadline() {
        for waited in [10, 333, 2000] {
            assert!(liveness(1).is_dead(at(1000), at(1000 + waited)));
        }
    }

    #[test]
    fn a_round_trip_above_the_deadline_is_not_a_dead_connection() {
        let slow = liveness(450);
        assert!(!slow.is_dead(at(1000), at(1333)));
        // An answer takes half of that, so this one is missing.
        assert!(slow.is_dead(at(1000), at(1900)));
        slow.heard(at(1450));
        assert!(!slow.is_dead(at(1333), at(1666)));
        assert_eq!(slow.patience(), Duration::from_millis(900));
    }

    #[test]
    fn answers_to_other_commands_keep_a_connection_until_they_end_too() {
        let busy = liveness(1);
        busy.heard(at(1950));
        assert!(busy.heard_since(at(1000)) && !busy.heard_since(at(1950)));
        assert!(!busy.is_dead(at(1000), at(2000)));
        assert!(busy.is_dead(at(1000), at(2050)));
        // What is read late tells nothing of an earlier time.
        busy.heard(at(1900));
        assert!(!busy.is_dead(at(1000), at(2000)));
    }

    #[test]
    fn a_connection_that_was_made_in_a_slow_moment_is_judged_by_what_was_seen_since() {
        let crowded = liveness(600);
        assert!(!crowded.is_dead(at(1000), at(1500)));
        crowded.answered(at(1500), at(1501));
        assert!(crowded.is_dead(at(2000), at(2500)));
        assert_eq!(crowded.patience(), SHORTEST_SILENCE);
        // One that was slow again does not undo it.
        crowded.answered(at(3000), at(3900));
        assert!(crowded.is_dead(at(4000), at(4500)));
    }

    #[test]
    fn a_command_that_waited_for_less_than_a_round_trip_says_so() {
        let told = liveness(450).unanswered(at(1000), at(1333));
        assert!(told.to_string().contains("a round trip to the server takes 450ms"), "{told}");
        assert!(told.is_sign_of_life(), "that says nothing about the server");
        let silent = liveness(450).unanswered(at(1000), at(1450));
        assert!(
            !silent.is_sign_of_life() && !silent.to_string().contains("round trip"),
            "{silent}"
        );
    }

    #[test]
    fn one_asks_at_a_time() {
        let liveness = liveness(1);
        assert!(liveness.begin_asking() && !liveness.begin_asking());
        liveness.done();
        assert!(liveness.begin_asking());
    }

    #[test]
    fn a_proof_counts_for_half_a_second_from_its_question_on() {
        let proof = Liveness::new(at(1000), Duration::ZERO, at(1000));
        assert!(!proof.needs_proof(at(1499)) && proof.needs_proof(at(1500)));
        proof.proven(at(1600));
        assert!(!proof.needs_proof(at(2099)) && proof.needs_proof(at(2100)));
        proof.proven(at(1400));
        assert!(!proof.needs_proof(at(2099)), "an answer that comes late undoes nothing");
    }

    #[test]
    fn who_waits_for_the_end_of_an_epoch_is_woken_by_the_next() {
        let (epochs, mut cx) = (Epochs::default(), Context::from_waker(Waker::noop()));
        let first = epochs.now();
        let mut left = pin!(epochs.left(first));
        assert!(left.as_mut().poll(&mut cx).is_pending());
        assert!(epochs.advance() > first && first == Epochs::FIRST);
        assert!(left.poll(&mut cx).is_ready());
        assert!(pin!(epochs.left(first)).poll(&mut cx).is_ready());
    }
}
