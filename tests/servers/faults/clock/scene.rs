use std::time::Duration;

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{ChildProcess, ClockShim, RedisServer};

use super::roles;
use crate::support::{child, lease, patient, wait};

/// By how much clocks step.
pub(super) const HOUR: Duration = Duration::from_secs(3_600);
/// The lease of the lock `a`.
pub(super) const LEASE: &str = "leasehold:{a}:lease";

/// A server with the time of day of a shim.
pub(super) fn server_with(shim: &ClockShim) -> RedisServer {
    RedisServer::builder().clock(shim).start()
}

pub(super) async fn runtime_at(url: &str, ttl: Duration) -> LockRuntime {
    let builder = patient::builder().ttl(ttl).claim_window(ttl.min(Duration::from_secs(1)));
    builder.connect(url).await.expect("the server answers")
}

/// Waits for the lock `a` as long as need be.
pub(super) async fn take(locks: &LockRuntime) -> Guard {
    let acquiring = locks.lock("a").expect("a name").acquire().wait(wait::CEILING);
    acquiring.await.expect("a lease")
}

/// Runs a child as `child::spawn` does, with the time of day of a shim.
pub(super) fn spawn(shim: &ClockShim, role: &str, server: &RedisServer) -> ChildProcess {
    let mut command = child::command(roles::CHILD, role, &[("url", &server.url())]);
    command.envs(shim.variables().iter().map(|(key, value)| (key, value)));
    ChildProcess::spawn(command)
}

/// The server's time.
pub(super) fn time(server: &RedisServer) -> Duration {
    let [seconds, micros]: [u64; 2] = server.query(&["TIME"]);
    Duration::from_micros(seconds * 1_000_000 + micros)
}

/// Nobody holds a lock or waits for it, and no key lives for ever.
pub(super) fn assert_clean(server: &RedisServer) {
    assert_eq!(lease::in_use(server), [""; 0]);
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}
