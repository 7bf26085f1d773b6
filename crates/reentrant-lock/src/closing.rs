//! For how long a lock stays closed after its lease, and what the answer to a release means.

use std::time::Duration;

use leasehold_core::{Instant, StoreErrorKind, lease::believed_until};

/// What is left at `now` of the time until which a lock is to stay closed, in whole milliseconds
/// and never less than asked; `None` when it may open.
pub(crate) fn rest(closed_until: Option<Instant>, now: Instant) -> Option<Duration> {
    let left = closed_until?.saturating_since(now);
    if left.is_zero() {
        return None;
    }
    let millis = left.as_nanos().div_ceil(1_000_000);
    Some(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
}

/// The first command that asked to keep a lock closed: when it was sent, and for how long.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FirstKeep(Option<(Instant, Duration)>);

impl FirstKeep {
    /// A command is sent that asks to keep the lock closed, or to open it.
    pub(crate) fn sent(&mut self, at: Instant, keep: Option<Duration>) {
        if let Some(keep) = keep {
            self.0.get_or_insert((at, keep));
        }
    }

    /// Whether "gone" may mean that a copy of ours was executed: a lock that was kept would still
    /// be there before its time is over.
    pub(crate) fn may_be_over(self, now: Instant) -> bool {
        // The margin is for clocks whose rates differ.
        self.0.is_none_or(|(sent_at, keep)| now >= believed_until(sent_at, keep))
    }
}

/// The copies that were sent of one release, of a lease that was believed when it was given back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copies {
    /// Until when the lease could be believed: nobody else had the lock before.
    until: Instant,
    /// From when on the runtime sends copies of its own.
    unattended_at: Instant,
    /// Whether a copy is on its way.
    sent: bool,
    /// Whether a copy before that may have been executed without an answer.
    doubtful: bool,
    first_keep: FirstKeep,
}

impl Copies {
    pub(crate) fn new(until: Instant, unattended_at: Instant) -> Self {
        let first_keep = FirstKeep::default();
        Self { until, unattended_at, sent: false, doubtful: false, first_keep }
    }

    /// A copy is sent, which asks to keep the lock closed, or to open it.
    pub(crate) fn sent(&mut self, at: Instant, keep: Option<Duration>) {
        // A copy whose future was dropped has no answer.
        self.doubtful |= std::mem::replace(&mut self.sent, true);
        self.first_keep.sent(at, keep);
    }

    /// The last copy failed.
    pub(crate) fn failed(&mut self, kind: StoreErrorKind) {
        self.sent = false;
        self.doubtful |= kind == StoreErrorKind::Indeterminate;
    }

    /// What the answer "gone" at `now` says of the lease.
    pub(crate) fn gone(&self, now: Instant) -> Gone {
        if !self.first_keep.may_be_over(now) {
            return Gone::Lost;
        }
        if now >= self.until {
            return Gone::Unknown;
        }
        if self.doubtful || now >= self.unattended_at { Gone::Released } else { Gone::Lost }
    }
}

/// What "gone" says of a lease that was believed when it was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// An earlier copy ended it: nobody else could have before the deadline.
    Released,
    /// It was lost before its release, or its lock was not kept closed.
    Lost,
    /// A release that came late, or the end of its time: both leave the same.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::at(Duration::from_micros(micros))
    }

    #[test]
    fn a_rest_is_never_shorter_than_asked() {
        assert_eq!(rest(None, at(0)), None);
        assert_eq!(rest(Some(at(5_000)), at(5_000)), None);
        assert_eq!(rest(Some(at(5_000)), at(7_000)), None);
        assert_eq!(rest(Some(at(5_000)), at(1_000)), Some(Duration::from_millis(4)));
        assert_eq!(rest(Some(at(5_001)), at(1_000)), Some(Duration::from_millis(5)));
    }

    #[test]
    fn gone_is_not_kept_before_the_time_is_over() {
        let mut first = FirstKeep::default();
        first.sent(at(0), None);
        assert!(first.may_be_over(at(0)), "it was to open at once");
        first.sent(at(1_000_000), Some(Duration::from_secs(10)));
        first.sent(at(2_000_000), Some(Duration::from_secs(1)));
        assert!(!first.may_be_over(at(10_800_000)));
        assert!(first.may_be_over(at(10_900_000)), "a hundredth for clocks that differ");
    }

    #[test]
    fn gone_is_a_release_only_after_a_copy_without_an_answer() {
        let fresh = Copies::new(at(9_000), at(3_000));
        let mut answered = fresh;
        answered.sent(at(0), None);
        assert_eq!(answered.gone(at(10)), Gone::Lost, "it was the first copy");
        assert_eq!(answered.gone(at(3_000)), Gone::Released, "the runtime may have sent another");
        assert_eq!(answered.gone(at(9_000)), Gone::Unknown, "its time may have ended it");

        let mut failed = answered;
        failed.failed(StoreErrorKind::Definite);
        failed.sent(at(20), None);
        assert_eq!(failed.gone(at(30)), Gone::Lost, "the first copy was not executed");
        failed.failed(StoreErrorKind::Indeterminate);
        failed.sent(at(40), None);
        assert_eq!(failed.gone(at(50)), Gone::Released);

        let mut dropped = answered;
        dropped.sent(at(20), None);
        assert_eq!(dropped.gone(at(30)), Gone::Released, "nobody heard the answer to the first");

        let mut kept = fresh;
        kept.sent(at(0), Some(Duration::from_secs(1)));
        assert_eq!(kept.gone(at(9_500)), Gone::Lost, "the lock was to stay closed for longer");
    }
}
