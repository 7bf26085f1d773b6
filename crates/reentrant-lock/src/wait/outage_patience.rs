use std::time::Duration;

use leasehold_core::{Instant, STOOD_STILL, outage::OutageState};

use crate::error::OptionsError;

/// For how long one wait tolerates a server that does not answer: from the beginning of the outage on,
/// also if that was before the call. The wait checks it from time to time, so that an outage need not wake
/// all waiting tasks when it begins.
// ADR 0013
#[derive(Debug, Clone, Copy)]
pub(super) struct OutagePatience {
    patience: Duration,
    /// Silence before this does not count.
    counts_from: Instant,
    look_at: Instant,
    /// An outage during a part of which this process stood still.
    excused: Option<Instant>,
}

impl OutagePatience {
    pub(super) fn new(patience: Duration, now: Instant, known: &OutageState) -> Self {
        let patience = patience.max(OptionsError::MIN_OUTAGE_PATIENCE);
        let (counts_from, look_at) = match known.outage() {
            // The server may be back: an answer has its time in any case.
            Some(outage) => {
                let soonest = now + known.allowance().min(patience);
                (outage.since, soonest.max(outage.since + patience))
            }
            None => (now, now + patience),
        };
        Self { patience, counts_from, look_at, excused: None }
    }

    /// When to check next.
    pub(super) fn look_at(&self) -> Instant {
        self.look_at
    }

    /// The check found that it is over, and that does not matter yet: it is due again at `at`.
    pub(super) fn look_again(&mut self, at: Instant) {
        self.look_at = at;
    }

    /// Whether the outage has lasted for long enough at `now`. `silent_since` is called only when a check
    /// is due. From `looks_from` on, the wait was able to check in time.
    pub(super) fn is_over(
        &mut self,
        now: Instant,
        looks_from: Instant,
        silent_since: impl FnOnce() -> Option<Instant>,
    ) -> bool {
        if now < self.look_at {
            return false;
        }
        let planned = self.look_at.max(looks_from);
        let Some(since) = silent_since() else {
            // A silence that begins from now on is not enough before that.
            self.look_at = now + self.patience;
            return false;
        };
        self.look_at = since.max(self.counts_from) + self.patience;
        if now < self.look_at {
            return false;
        }
        // Answers may have come while this process stood still, and be read in a moment.
        if now >= planned + STOOD_STILL && self.excused != Some(since) {
            self.excused = Some(since);
            self.counts_from = now;
            self.look_at = now + self.patience;
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn patience() -> OutagePatience {
        OutagePatience::new(Duration::from_secs(5), at(1_000), &OutageState::default())
    }

    #[test]
    fn it_is_enough_after_the_patience_without_an_answer() {
        let mut patience = patience();
        assert_eq!(patience.look_at(), at(6_000));
        // Nothing had failed when the wait began.
        assert!(!patience.is_over(at(5_999), at(1_000), || Some(at(0))));
        assert!(patience.is_over(at(6_000), at(1_000), || Some(at(0))));
    }

    #[test]
    fn an_answer_begins_it_anew() {
        let mut patience = patience();
        assert!(!patience.is_over(at(6_000), at(1_000), || Some(at(4_000))));
        assert_eq!(patience.look_at(), at(9_000));
        assert!(!patience.is_over(at(9_000), at(1_000), || None));
        assert_eq!(patience.look_at(), at(14_000));
        assert!(patience.is_over(at(14_000), at(1_000), || Some(at(9_000))));
    }

    #[test]
    fn a_process_that_stood_still_gives_the_server_its_time_once() {
        let mut patience = patience();
        assert!(!patience.is_over(at(60_000), at(1_000), || Some(at(2_000))));
        assert_eq!(patience.look_at(), at(65_000));
        assert!(patience.is_over(at(65_600), at(1_000), || Some(at(2_000))));
    }

    #[test]
    fn a_first_look_that_was_not_due_before_is_no_pause() {
        let mut patience = patience();
        assert!(patience.is_over(at(11_000), at(11_000), || Some(at(1_000))));
    }

    #[test]
    fn no_patience_at_all_does_not_look_without_end() {
        let mut patience = OutagePatience::new(Duration::ZERO, at(1_000), &OutageState::default());
        assert!(!patience.is_over(at(1_010), at(1_000), || None));
        assert_eq!(patience.look_at(), at(1_020));
    }
}
