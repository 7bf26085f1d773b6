//! A lease as the server keeps it: a part of a text that outlives it, and its end by the server's
//! clock.

use std::time::Duration;

use leasehold::AcquisitionId;
use leasehold_testkit::{LockText, RedisServer};

/// The server's time and the end of the lease under a key, in microseconds; -1 if nobody has one.
const LOOK: &str = "local time = redis.call('TIME') \
                    local text = redis.call('GET', KEYS[1]) or '' \
                    local ends = #text > 91 and string.sub(text, 78, 90) \
                    return {time[1] * 1000000 + time[2], ends and ends * 1000 or -1}";

/// The server's time and the end of a lease by it, in microseconds; `None` if nobody holds the lock.
pub(crate) fn expiry(server: &RedisServer, key: &str) -> Option<(u64, u64)> {
    let (now, ends_at): (u64, i64) = server.query(&["EVAL", LOOK, "1", key]);
    let ends_at = u64::try_from(ends_at).ok()?;
    // The server counts in whole milliseconds.
    (ends_at / 1_000 >= now / 1_000).then_some((now, ends_at))
}

/// How long a lease has left; `None` if nobody holds the lock.
pub(crate) fn left(server: &RedisServer, key: &str) -> Option<Duration> {
    expiry(server, key).map(|(now, ends_at)| Duration::from_micros(ends_at.saturating_sub(now)))
}

/// Whether somebody holds the lock.
pub(crate) fn is_held(server: &RedisServer, key: &str) -> bool {
    expiry(server, key).is_some()
}

/// All that a renewal leaves as it is: the text without times of expiry, waiters and marks, which a late
/// withdrawal makes longer.
pub(crate) fn row(server: &RedisServer, key: &str) -> LockText {
    let mut text = LockText::of(server, key);
    text.expires.clear();
    text.marks = None;
    // Others come and go.
    text.flags.retain(|flag| flag != 'w');
    if let Some(lease) = &mut text.lease {
        lease.end = 0;
    }
    text
}

/// When the present lease was granted, by the server's time in microseconds.
pub(crate) fn granted_at(server: &RedisServer, key: &str) -> u64 {
    LockText::of(server, key).lease().since
}

/// How many holds an acquisition has; `None` if it does not hold the lock.
pub(crate) fn holds(server: &RedisServer, key: &str, id: AcquisitionId) -> Option<u64> {
    let text = LockText::find(server, key)?;
    text.is_held_by(id).then(|| text.holds.map_or(1, |(count, _)| count))
}

/// The leases of a namespace that somebody holds.
pub(crate) fn held(server: &RedisServer) -> Vec<String> {
    let mut leases: Vec<String> = server.query(&["KEYS", "leasehold:*:lease"]);
    leases.retain(|key| is_held(server, key));
    leases
}

/// The leases that somebody holds, and the keys of those who wait. What else there is remembers
/// fences for a week, or what was withdrawn for a moment.
pub(crate) fn in_use(server: &RedisServer) -> Vec<String> {
    let mut keys = held(server);
    for pattern in ["leasehold:*:queue", "leasehold:*:waiters"] {
        keys.extend(server.query::<Vec<String>>(&["KEYS", pattern]));
    }
    keys
}
