use std::time::Duration;

use crate::Instant;

/// When a lease of another process ends, as heard again and again, and since when that is so: a renewal
/// moves the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeardEnd {
    end: Instant,
    since: Instant,
}

impl HeardEnd {
    /// A lease that has `left` at `now`.
    pub fn new(now: Instant, left: Duration) -> Self {
        Self { end: now + left, since: now }
    }

    /// A lease of the same lock, perhaps the same one, that has `left` at `now`.
    #[must_use]
    pub fn hear(self, now: Instant, left: Duration) -> Self {
        let new = Self::new(now, left);
        let moved = new.end.saturating_since(self.end).max(self.end.saturating_since(new.end));
        // Answers take different times. A renewal moves the end by about a third of the ttl.
        let slack = self.end.saturating_since(self.since) / 16;
        if moved > slack { new } else { self }
    }

    /// For how long at least the lease was not renewed, if that is two thirds of its time or more. A
    /// holder that is well renews its lease after a third.
    pub fn unrenewed_for(self, now: Instant) -> Option<Duration> {
        let unrenewed = now.saturating_since(self.since);
        let left = self.end.saturating_since(now);
        (!unrenewed.is_zero() && unrenewed >= left * 2).then_some(unrenewed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// What is heard of a lease of `ttl` ms that was renewed at these times, by answers that take up to
    /// `late` ms.
    fn unrenewed(ttl: u64, renewed: &[u64], late: u64, until: u64) -> Option<Duration> {
        let left = |now| renewed.iter().filter(|at| **at <= now).max().map(|at| at + ttl - now);
        let mut heard = HeardEnd::new(at(0), millis(left(0).unwrap()));
        for now in (0..=until).step_by(750) {
            heard = heard.hear(at(now + now % (late + 1)), millis(left(now).unwrap()));
        }
        // A caller asks right after it has heard of the lease.
        heard.hear(at(until), millis(left(until).unwrap())).unrenewed_for(at(until))
    }

    #[test]
    fn a_holder_is_silent_after_two_thirds_of_its_ttl() {
        assert_eq!(unrenewed(30_000, &[0], 0, 19_900), None);
        assert_eq!(unrenewed(30_000, &[0], 0, 20_000), Some(millis(20_000)));
        assert_eq!(unrenewed(30_000, &[0], 200, 27_000), Some(millis(27_000)));
        // Renewed twice: the wait counts from the hearing after that.
        assert_eq!(unrenewed(30_000, &[0, 10_000, 20_000], 0, 39_000), None);
        assert_eq!(unrenewed(30_000, &[0, 10_000, 20_000], 0, 42_000), Some(millis(21_750)));
    }

    #[test]
    fn one_that_is_renewed_in_time_never_is() {
        for ttl in [1_000, 3_000, 10_000, 30_000] {
            let renewed: Vec<_> = (0..100).map(|n| n * ttl / 3).collect();
            for until in (0..30_000).step_by(50) {
                assert_eq!(unrenewed(ttl, &renewed[..], 150, until), None, "{ttl} {until}");
            }
        }
    }

    #[test]
    fn the_lease_of_the_next_holder_is_another() {
        let heard = HeardEnd::new(at(0), millis(30_000)).hear(at(25_000), millis(3_000));
        assert_eq!(heard.unrenewed_for(at(25_000)), None);
    }
}
