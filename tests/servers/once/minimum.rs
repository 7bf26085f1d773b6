use std::{future::pending, time::Duration};

use leasehold::{Guard, LockRuntime, Released};
use leasehold_testkit::RedisServer;

use super::{
    CHILD,
    server::{TTL, as_micros, assert_granted_after, expiry, granted_at, runtime_at},
};
use crate::support::{child, wait};

const LEASE: &str = "leasehold:{job}:lease";
const MINIMUM: Duration = Duration::from_secs(6);

async fn take(locks: &LockRuntime) -> Guard {
    let lock = locks.lock("job").expect("a name");
    wait::soon("the lock", lock.acquire().wait_forever()).await.expect("a lease")
}

/// The process that released it is killed: the rest of the minimum stands at the server.
#[tokio::test]
async fn the_rest_outlives_the_process_and_opens_to_a_waiter_when_it_is_over() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let mut killed = child::spawn(CHILD, "hold", &[("url", &server.url()), ("then", "releases")]);
    killed.wait_for_line("released", wait::CEILING);
    killed.kill();
    let since = granted_at(&server, LEASE);
    let (now, ends_at) = expiry(&server, LEASE);
    assert!(ends_at + 2_000 >= since + as_micros(MINIMUM), "less than the minimum is kept");
    assert!(ends_at <= now + as_micros(MINIMUM) + 1_000);
    assert!(locks.lock("job").unwrap().try_acquire().await.unwrap().is_none());
    let next = take(&locks).await;
    assert_granted_after(granted_at(&server, LEASE), ends_at);
    next.release().await.expect("held to the end");
}

/// The process is killed while it holds: the ttl decides, not the minimum.
#[tokio::test]
async fn a_killed_holder_frees_after_its_ttl_whatever_its_minimum() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let mut killed = child::spawn(CHILD, "hold", &[("url", &server.url()), ("then", "hangs")]);
    killed.wait_for_line("held", wait::CEILING);
    killed.kill();
    let (now, ends_at) = expiry(&server, LEASE);
    assert!(ends_at <= now + as_micros(TTL));
    let next = take(&locks).await;
    assert_granted_after(granted_at(&server, LEASE), ends_at);
    next.release().await.expect("held to the end");
}

/// Holds the lock with a minimum, and ends as it is told.
pub(crate) async fn hold() {
    let locks = runtime_at(&child::arg("url")).await;
    let gives_back = child::arg("then") == "releases";
    let minimum = if gives_back { MINIMUM } else { Duration::from_secs(3600) };
    let acquire = locks.lock("job").expect("a name").acquire().min_hold(minimum);
    let guard = acquire.await.expect("the lock is free");
    println!("held");
    if gives_back {
        let released = guard.release().await.expect("held to the end");
        assert!(matches!(released, Released::Kept { .. }), "{released:?}");
        println!("released");
        return pending().await;
    }
    // Dropped with the process.
    let _guard = guard;
    pending::<()>().await;
}
