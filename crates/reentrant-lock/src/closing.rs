//! For how long a lock stays closed after its lease, and what an answer says of that.

use std::time::Duration;

use leasehold_core::{Instant, lease::believed_until};

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
}
