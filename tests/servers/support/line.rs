//! The line of a lock on a real server, by the server's own words and times.

use leasehold_testkit::RedisServer;

use super::{lease, wait};

/// The keys of the lock `a`.
pub(crate) const LEASE: &str = "leasehold:{a}:lease";
pub(crate) const QUEUE: &str = "leasehold:{a}:queue";

/// How many runtimes stand in the queue.
pub(crate) fn length(server: &RedisServer) -> u64 {
    server.query(&["ZCARD", QUEUE])
}

/// Waits until so many runtimes stand in the queue.
pub(crate) async fn until_length(server: &RedisServer, length: u64) {
    wait::until("the queue has its length", || self::length(server) == length).await;
}

/// When the present lease was granted, by the server's time in microseconds.
pub(crate) fn granted_at(server: &RedisServer) -> u64 {
    lease::granted_at(server, LEASE)
}
