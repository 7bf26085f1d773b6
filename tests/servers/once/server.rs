use std::time::Duration;

use leasehold::LockRuntime;
use leasehold_testkit::RedisServer;

use crate::support::{lease, patient};

/// The ttl of all leases here.
pub(crate) const TTL: Duration = Duration::from_secs(4);

pub(crate) async fn runtime_at(url: &str) -> LockRuntime {
    patient::builder().ttl(TTL).connect(url).await.expect("the server answers")
}

/// The server's time and the end of a lease by it, in microseconds.
pub(crate) fn expiry(server: &RedisServer, key: &str) -> (u64, u64) {
    lease::expiry(server, key).expect("somebody holds it")
}

/// When the present lease was granted, by the server's clock in microseconds.
pub(crate) fn granted_at(server: &RedisServer, key: &str) -> u64 {
    lease::granted_at(server, key)
}

pub(crate) fn as_micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).expect("a test is short")
}

/// Granted no earlier than the lease before it ended, and not long after.
pub(crate) fn assert_granted_after(granted_at: u64, ends_at: u64) {
    // The server keeps times to live in whole milliseconds.
    assert!(granted_at + 2_000 >= ends_at, "{} µs too early", ends_at - granted_at);
    let late = granted_at.saturating_sub(ends_at);
    assert!(late < as_micros(Duration::from_secs(20)), "{late} µs late");
}
