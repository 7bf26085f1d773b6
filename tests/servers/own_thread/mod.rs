//! A runtime with its own thread, and the tokio runtimes that it does without.
#![expect(clippy::disallowed_methods, reason = "futures wait in real time")]

mod anywhere;

use leasehold::{LeaseState, LockRuntime, LossReason, Released};
use leasehold_testkit::RedisServer;

use crate::support::{patient, wait};

#[test]
fn a_tokio_runtime_that_stops_takes_the_leases_of_its_locks_with_it() {
    let server = RedisServer::start();
    let (locks, guard) = wait::on_one_thread(async {
        let locks = LockRuntime::connect(&server.url()).await.expect("the server answers");
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        (locks, guard)
    });
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::WatchdogStopped));
    nobody_acquires(&locks);
}

#[test]
fn so_does_one_that_an_embedded_store_lives_on() {
    let (locks, guard) = wait::on_one_thread(async {
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
        wait::on_one_thread(async { (lock.try_acquire().await.err(), lock.acquire().await.err()) });
    for error in [outcomes.0, outcomes.1] {
        let text = error.expect("a runtime that has stopped").to_string();
        assert!(text.contains("own_thread()") && text.contains("lock \"b\""), "{text}");
    }
}

#[test]
fn a_tokio_runtime_that_stops_leaves_a_runtime_with_its_own_thread_alone() {
    let server = RedisServer::start();
    let (locks, guard) = wait::on_one_thread(async {
        let locks = patient::builder().own_thread().connect(&server.url()).await;
        let locks = locks.expect("the server answers");
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        locks.inspect("a").await.expect("an answer");
        (locks, guard)
    });
    assert!(guard.is_held());
    wait::on_one_thread(async {
        assert!(guard.reenter().await.is_ok());
        locks.inspect("a").await.expect("an answer");
        assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
    });
}
