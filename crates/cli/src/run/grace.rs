use std::time::Duration;

use crate::durations::{GRACE, LEASE_LOOK};

/// How long a command may take to end after SIGTERM, and from when on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// ADR 0045
pub(super) struct Grace {
    pub(super) time: Duration,
    /// Whether it begins when the lease has ended, and not so early that both end together.
    pub(super) is_after: bool,
    ttl: Duration,
}

impl Grace {
    /// The grace of a lease, unless one was asked for that does not fit into it: then the text says
    /// why.
    ///
    /// A renewal goes out after a third of the ttl, and its answer may take a sixth: half of the ttl,
    /// less the margin of the belief, is left in the worst case in which nothing is wrong.
    pub(super) fn of(
        asked: Option<Duration>,
        is_after: bool,
        ttl: Duration,
    ) -> Result<Self, String> {
        let longest = if is_after { GRACE } else { ttl / 3 };
        let time = asked.unwrap_or_else(|| GRACE.min(longest));
        let margin = (ttl / 100).max(Duration::from_millis(2));
        if asked.is_some() && !is_after && time.saturating_add(margin).saturating_mul(2) >= ttl {
            return Err(format!(
                "a grace of {time:?} does not fit into a ttl of {ttl:?}: the command has to end before its lease, so the \
                 grace is less than 49 % of the ttl; shorten --grace, lengthen --ttl, or write --grace-after"
            ));
        }
        Ok(Self { time, is_after, ttl })
    }

    /// In what time it begins, for a lease that is held for so long without another renewal.
    pub(super) fn begins_in(self, remaining: Duration) -> Duration {
        if self.is_after { remaining } else { remaining.saturating_sub(self.time) }
    }

    /// When to look at the lease again: sooner and sooner as the grace comes nearer, so that the guard
    /// learns of a renewal in time.
    pub(super) fn pause(self, remaining: Duration) -> Duration {
        let left = self.begins_in(remaining);
        if left <= LEASE_LOOK {
            return left.max(Duration::from_millis(1));
        }
        (left / 2).min(self.ttl / 8).max(LEASE_LOOK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_default_fits_into_every_ttl() {
        for (ttl, time) in [(30_000, 10_000), (86_400_000, 10_000), (600, 200), (100, 33)] {
            let grace = Grace::of(None, false, ms(ttl)).unwrap();
            assert_eq!(grace.time.as_millis(), time);
        }
        assert_eq!(Grace::of(None, true, ms(600)).unwrap().time, ms(10_000));
    }

    #[test]
    fn a_grace_that_does_not_fit_is_refused_with_what_to_do() {
        let text = Grace::of(Some(ms(15_000)), false, ms(30_000)).unwrap_err();
        assert!(text.contains("15s") && text.contains("--grace-after"), "{text}");
        assert!(Grace::of(Some(ms(14_700)), false, ms(30_000)).is_err(), "the margin");
        assert!(Grace::of(Some(ms(14_699)), false, ms(30_000)).is_ok());
        assert!(Grace::of(Some(ms(60_000)), true, ms(30_000)).is_ok());
        assert!(Grace::of(Some(Duration::MAX / 4), false, ms(30_000)).is_err());
    }

    #[test]
    fn grace_and_lease_end_together_and_with_grace_after_one_after_the_other() {
        let before = Grace::of(Some(ms(400)), false, ms(1000)).unwrap();
        assert_eq!(before.begins_in(ms(1000)), ms(600));
        assert!(before.begins_in(ms(400)).is_zero() && !before.is_after);
        let after = Grace::of(Some(ms(400)), true, ms(1000)).unwrap();
        assert_eq!(after.begins_in(ms(1000)), ms(1000));
        assert!(after.is_after);
    }

    #[test]
    fn looks_come_sooner_as_the_grace_comes_nearer_and_never_without_a_pause() {
        let grace = Grace::of(Some(ms(400)), false, ms(1000)).unwrap();
        let pauses = [1000, 500, 430, 405, 400, 0].map(|left| grace.pause(ms(left)));
        assert_eq!(pauses, [125, 50, 15, 5, 1, 1].map(ms));
    }
}
