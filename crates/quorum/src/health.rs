use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use leasehold_core::Instant;

use crate::durations::RESTS;

/// How well a node has answered of late, and what time it told.
#[derive(Debug, Default)]
pub(super) struct Health {
    failures: AtomicU32,
    /// Until when it is asked last, in nanoseconds since the clock's origin.
    rests_until: AtomicU64,
    /// How long it takes as a rule, in nanoseconds.
    usual: AtomicU64,
    /// What time it was there when the clock of this process began, in microseconds since the Unix epoch; 0
    /// if that is not known.
    origin: AtomicU64,
}

impl Health {
    pub(super) fn on_answer(&self, took: Duration) {
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.rests_until.store(0, Ordering::Relaxed);
        }
        let (took, usual) = (nanos(took), self.usual.load(Ordering::Relaxed));
        let usual = if usual == 0 { took } else { usual - usual / 8 + took / 8 };
        self.usual.store(usual, Ordering::Relaxed);
    }

    pub(super) fn on_failure(&self, now: Instant) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).min(8);
        let rest = (*RESTS.start() * 2_u32.pow(failures)).min(*RESTS.end());
        self.rest(now + rest);
    }

    /// It does not vote until then.
    pub(super) fn rest(&self, until: Instant) {
        self.rests_until.store(nanos(until.since_origin()), Ordering::Relaxed);
    }

    pub(super) fn is_unwell(&self, now: Instant) -> bool {
        let until = self.rests_until.load(Ordering::Relaxed);
        until != 0 && until > nanos(now.since_origin())
    }

    /// How long it takes to answer as a rule.
    pub(super) fn usual(&self) -> Duration {
        Duration::from_nanos(self.usual.load(Ordering::Relaxed))
    }

    /// What time it is there, in microseconds since the Unix epoch, if it has told.
    pub(super) fn time(&self, now: Instant) -> Option<u64> {
        let origin = Some(self.origin.load(Ordering::Relaxed)).filter(|origin| *origin != 0)?;
        Some(origin.saturating_add(micros(now.since_origin())))
    }

    /// It has told its time, in answer to what was `sent` and `heard` then; `here` is the time of day in this
    /// process, which may be wrong. What is known moves no farther than it has to.
    pub(super) fn learn_time(&self, told: u64, here: u64, sent: Instant, heard: Instant) {
        let known = match self.origin.load(Ordering::Relaxed) {
            0 => here.saturating_sub(micros(heard.since_origin())),
            known => known,
        };
        let least = told.saturating_sub(micros(heard.since_origin()));
        let most = told.saturating_sub(micros(sent.since_origin()));
        let origin = known.clamp(least, most.max(least));
        self.origin.store(origin.max(1), Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    #[test]
    fn a_node_rests_for_longer_with_each_failure_and_recovers_with_an_answer() {
        let (health, now) = (Health::default(), at(9_000));
        assert!(!health.is_unwell(now));
        health.on_failure(now);
        assert!(health.is_unwell(now) && !health.is_unwell(now + *RESTS.start()));
        health.on_failure(now);
        assert!(health.is_unwell(now + *RESTS.start()));
        health.on_answer(Duration::from_millis(2));
        assert!(!health.is_unwell(now));
        assert_eq!(health.usual(), Duration::from_millis(2));
    }

    #[test]
    fn a_time_that_can_be_right_is_kept_and_another_one_moved_no_farther_than_it_has_to() {
        // It told 9 s between 1 s and 3 s here: when the clock began here, it was between 6 s and 8 s there.
        let origin = |known: u64| {
            let health = Health::default();
            health.learn_time(9_000_000, known + 3_000_000, at(1_000), at(3_000));
            health.time(at(0))
        };
        assert_eq!(origin(7_000_000), Some(7_000_000));
        assert_eq!(origin(60_000_000), Some(8_000_000));
        assert_eq!(origin(0), Some(6_000_000));
    }

    #[test]
    fn a_node_is_believed_at_first_as_far_as_the_clock_here_may_be_wrong() {
        let health = Health::default();
        assert_eq!(health.time(at(0)), None);
        health.learn_time(9_000_000, 69_000_000, at(1_000), at(3_000));
        assert_eq!(health.time(at(0)), Some(8_000_000));
        health.learn_time(9_500_000, 0, at(3_000), at(3_100));
        assert_eq!(health.time(at(0)), Some(6_500_000), "it has stepped back");
    }
}
