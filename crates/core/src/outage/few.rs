use std::time::Duration;

use crate::clock::Instant;

/// Lets the first few of many equal events pass, and counts the others.
#[derive(Debug, Default)]
pub(super) struct Few {
    since: Option<Instant>,
    passed: u32,
    others: u64,
}

impl Few {
    /// How many are let through within a window.
    const MAX: u32 = 5;
    /// The window; it begins with its first event.
    const WINDOW: Duration = Duration::from_secs(10);

    /// Whether an event at `now` is one of the few; otherwise it is counted.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.saturating_since(since) >= Self::WINDOW) {
            self.since = Some(now);
            self.passed = 0;
        }
        let admitted = self.passed < Self::MAX;
        if admitted {
            self.passed += 1;
        } else {
            self.others += 1;
        }
        admitted
    }

    /// How many were counted since the last call.
    pub(super) fn take_others(&mut self) -> u64 {
        std::mem::take(&mut self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_pass_in_each_window_and_the_others_are_counted() {
        let at = |seconds| Instant::at(Duration::from_secs(seconds));
        let mut few = Few::default();
        assert_eq!((0..100).filter(|_| few.admits(at(1))).count(), 5);
        assert_eq!((few.take_others(), few.take_others()), (95, 0));
        assert!(!few.admits(at(10)) && few.admits(at(11)));
    }
}
