//! Blocking code on the user's own tokio runtime: a runtime with its own thread renews all the
//! same.
#![expect(clippy::disallowed_methods, reason = "blocks a thread, as careless code does")]

mod anywhere;

use std::{thread, time::Duration};

use leasehold::{
    LeaseState, LockRuntime, LockRuntimeBuilder, LossReason, Released, error::ReleaseError,
};
use leasehold_testkit::RedisServer;

use crate::support::patient;

const TTL: Duration = Duration::from_secs(3);

/// Runs on one thread, as `#[tokio::main(flavor = "current_thread")]` does.
fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a tokio runtime").block_on(future)
}

/// The state of a lease whose holder blocked its thread for longer than the ttl, and its release.
async fn block(builder: LockRuntimeBuilder) -> (LeaseState, Result<Released, ReleaseError>) {
    let server = RedisServer::start();
    let locks = builder.ttl(TTL).connect(&server.url()).await.expect("the server answers");
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    thread::sleep(TTL * 2);
    // The first look: nothing was awaited since the thread was blocked.
    let state = guard.lease().state();
    (state, guard.release().await)
}

#[test]
fn blocking_code_does_not_lose_the_lease() {
    let (state, released) = on_one_thread(block(patient::builder().own_thread()));
    assert!(state.is_held(), "{state:?}");
    assert_eq!(released.expect("held to the end"), Released::Ended);
}

#[test]
fn control_on_the_users_runtime_it_loses_the_lease_and_is_told() {
    let (state, released) = on_one_thread(block(patient::builder()));
    assert_eq!(state, LeaseState::Lost(LossReason::Expired));
    assert!(matches!(released, Err(ReleaseError::Lost(_))), "{released:?}");
}

#[test]
fn a_tokio_runtime_that_stops_takes_the_leases_of_its_locks_with_it() {
    let server = RedisServer::start();
    let (locks, guard) = on_one_thread(async {
        let locks = LockRuntime::connect(&server.url()).await.expect("the server answers");
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        (locks, guard)
    });
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::WatchdogStopped));
    nobody_acquires(&locks);
}

#[test]
fn so_does_one_that_an_embedded_store_lives_on() {
    let (locks, guard) = on_one_thread(async {
        let locks = LockRuntime::embedded().expect("settings that can work");
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        (locks, guard)
    });
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::WatchdogStopped));
    nobody_acquires(&locks);
}

/// At once, and with the remedy, whether it would wait or not.
fn nobody_acquires(locks: &LockRuntime) {
    let lock = locks.lock("b").expect("a name");
    let outcomes =
        on_one_thread(async { (lock.try_acquire().await.err(), lock.acquire().await.err()) });
    for error in [outcomes.0, outcomes.1] {
        let text = error.expect("a runtime that has stopped").to_string();
        assert!(text.contains("own_thread()") && text.contains("lock \"b\""), "{text}");
    }
}

#[test]
fn a_tokio_runtime_that_stops_leaves_a_runtime_with_its_own_thread_alone() {
    let server = RedisServer::start();
    let (locks, guard) = on_one_thread(async {
        let locks = patient::builder().own_thread().connect(&server.url()).await;
        let locks = locks.expect("the server answers");
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        locks.inspect("a").await.expect("an answer");
        (locks, guard)
    });
    assert!(guard.is_held());
    on_one_thread(async {
        assert!(guard.reenter().await.is_ok());
        locks.inspect("a").await.expect("an answer");
        assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
    });
}
