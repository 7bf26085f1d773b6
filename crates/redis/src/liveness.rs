use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use leasehold_core::{Instant, SHORTEST_SILENCE, StoreError};

use super::classify::unanswered;

/// When something was read on a connection last, and how long its round trips are.
///
/// A server answers the commands of a connection in their order. So a command without an answer
/// says that the connection is dead, or that the network takes longer than the deadline; what was
/// read meanwhile, and the round trip, tell these apart.
#[derive(Debug)]
pub(super) struct Liveness {
    /// Nanoseconds since the clock's origin.
    heard_at: AtomicU64,
    /// Nanoseconds: the shortest that was seen.
    round_trip: AtomicU64,
    is_asked: AtomicBool,
}

impl Liveness {
    /// The liveness of a connection that was made just now.
    pub(super) fn new(now: Instant, round_trip: Duration) -> Self {
        let heard_at = AtomicU64::new(nanos(now.since_origin()));
        let round_trip = AtomicU64::new(nanos(round_trip));
        Self { heard_at, round_trip, is_asked: AtomicBool::new(false) }
    }

    /// A command that was sent at `sent_at` was answered at `now`. A shorter round trip replaces
    /// the known one, which may have been measured while many connected at once.
    pub(super) fn answered(&self, sent_at: Instant, now: Instant) {
        self.heard(now);
        let took = nanos(now.saturating_since(sent_at));
        if took < self.round_trip.load(Ordering::Relaxed) {
            self.round_trip.fetch_min(took, Ordering::Relaxed);
        }
    }

    /// Something was read at `now`.
    pub(super) fn heard(&self, now: Instant) {
        self.heard_at.fetch_max(nanos(now.since_origin()), Ordering::Relaxed);
    }

    /// Whether something was read after `at`.
    pub(super) fn heard_since(&self, at: Instant) -> bool {
        self.heard_at() > at
    }

    /// Whether a connection is to be replaced on which a command that was sent at `sent_at` has no
    /// answer at `now`. Otherwise it is asked whether it still works, and used meanwhile.
    pub(super) fn is_dead(&self, sent_at: Instant, now: Instant) -> bool {
        let heard_at = self.heard_at();
        let longest = if heard_at > sent_at { self.patience() } else { self.round_trip() * 2 };
        now.saturating_since(heard_at.max(sent_at)) >= longest
    }

    /// How long an answer may take before the connection counts as dead.
    pub(super) fn patience(&self) -> Duration {
        (self.round_trip() * 2).max(SHORTEST_SILENCE)
    }

    /// Whether the caller may send a `PING`, one at a time, until [`done`](Self::done).
    pub(super) fn begin_asking(&self) -> bool {
        !self.is_asked.swap(true, Ordering::AcqRel)
    }

    pub(super) fn done(&self) {
        self.is_asked.store(false, Ordering::Release);
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
        Duration::from_nanos(self.round_trip.load(Ordering::Relaxed))
    }

    fn heard_at(&self) -> Instant {
        Instant::at(Duration::from_nanos(self.heard_at.load(Ordering::Relaxed)))
    }
}

/// A time of the clock as an atomic number.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn liveness(round_trip: u64) -> Liveness {
        Liveness::new(at(0), Duration::from_millis(round_trip))
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
}
