use std::time::Duration;

use crate::backoff::backoff;

/// How long to wait before the next attempt to subscribe: longer with every failure in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The longest wait after a connection that worked.
    const FIRST: Duration = Duration::from_millis(20);

    /// The longest wait after any number of failures.
    const LONGEST: Duration = Duration::from_secs(3);

    /// The longest wait after a refusal, which only an operator can lift.
    const REFUSED: Duration = Duration::from_secs(30);

    /// The wait before the next attempt; `fraction` in `[0, 1)` spreads those of many runtimes
    /// over the second half of it.
    pub(super) fn failed(&mut self, fraction: f64) -> Duration {
        let pause = backoff(Self::FIRST, Self::LONGEST, self.failures, fraction);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// The wait before the next attempt when the server refused this one.
    pub(super) fn refused(&mut self, fraction: f64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        backoff(Self::REFUSED, Self::REFUSED, 0, fraction)
    }

    /// Whether no attempt has failed since the last one that succeeded.
    pub(super) fn is_fresh(self) -> bool {
        self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_limit_and_are_spread() {
        let mut backoff = Backoff::default();
        assert!(backoff.is_fresh());
        let first = backoff.failed(0.5);
        assert_eq!(first, Duration::from_millis(15));
        assert!(backoff.failed(0.0) > first);
        assert!(!backoff.is_fresh());
        for _ in 0..100 {
            backoff.failed(0.5);
        }
        assert_eq!(backoff.failed(0.0), Duration::from_millis(1500));
        assert!(backoff.failed(1.0) <= Duration::from_secs(3));
        assert_eq!(backoff.refused(0.0), Duration::from_secs(15));
    }
}
