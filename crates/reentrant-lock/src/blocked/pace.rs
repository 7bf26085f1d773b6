use std::time::Duration;

use leasehold_core::Instant;

/// When a call that began to wait at `started` is to be reported next, seen at `now`.
///
/// First after `blocked_after`, then whenever the time it has waited has doubled.
pub(crate) fn next_report(started: Instant, now: Instant, blocked_after: Duration) -> Instant {
    let waited = now.saturating_since(started);
    let mut next = blocked_after.max(Duration::from_millis(1));
    while next <= waited {
        next = next.saturating_mul(2);
    }
    started + next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_reported_whenever_it_has_doubled() {
        let at = |seconds| Instant::at(Duration::from_secs(seconds));
        let next = |now| next_report(at(100), at(now), Duration::from_secs(10));
        assert_eq!(
            [100, 109, 110, 119, 120, 139, 140].map(next),
            [at(110), at(110), at(120), at(120), at(140), at(140), at(180)]
        );
        let never = next_report(at(100), at(1_000_000), Duration::MAX);
        assert!(never > at(1_000_000_000));
    }
}
