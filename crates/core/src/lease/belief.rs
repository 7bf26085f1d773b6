use std::time::Duration;

use crate::clock::Instant;

/// How long before the server does a holder treat its lease as ended: 2 ms or 1 % of the ttl,
/// whichever is greater.
///
/// It covers clocks whose rates differ by up to 1 %, and Redis' granularity when it expires keys
/// (compare the drift of [Redlock](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/)).
pub fn margin(ttl: Duration) -> Duration {
    (ttl / 100).max(Duration::from_millis(2))
}

/// Until when a lease may be believed that had `remaining` left in the answer to a request.
///
/// It counts from `sent_at`, *before* the request was sent. The server set the expiry later, so
/// belief always ends before the server's lease does.
pub fn believed_until(sent_at: Instant, remaining: Duration) -> Instant {
    sent_at + remaining.saturating_sub(margin(remaining))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_one_percent_but_never_below_two_milliseconds() {
        assert_eq!(margin(Duration::from_secs(30)), Duration::from_millis(300));
        assert_eq!(margin(Duration::from_millis(100)), Duration::from_millis(2));
    }

    #[test]
    fn belief_counts_from_the_send_time() {
        let sent_at = Instant::at(Duration::from_secs(1));
        let until = believed_until(sent_at, Duration::from_secs(10));
        assert_eq!(until, Instant::at(Duration::from_millis(10_900)));
        assert_eq!(believed_until(sent_at, Duration::from_millis(1)), sent_at);
    }
}
