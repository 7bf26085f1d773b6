//! No setting makes a call panic: times as long as can be, and tokio runtimes that lack a part.
//!
//! A time is either refused with its range, or taken for what it is: longer than anybody waits.

use std::time::Duration;

use leasehold::{
    LockRuntime, Released,
    error::{ConnectError, StoreErrorKind},
    fencing::{FenceGate, RedisGate},
    redis::{RedisConfig, RedisPool},
};
use leasehold_testkit::RedisServer;

use crate::support::wait;

const LONGEST: Duration = Duration::MAX;

#[tokio::test]
async fn a_runtime_whose_timeouts_are_the_longest_works() {
    let server = RedisServer::start();
    let builder = LockRuntime::builder().connect_timeout(LONGEST).command_timeout(LONGEST);
    let url = server.url();
    let connecting = builder.claim_window(LONGEST).connect(&url);
    let locks = wait::soon("connect", connecting).await.expect("the server answers");
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    let inner = guard.reenter().await.expect("re-entry");
    assert!(locks.lock("a").expect("a name").try_acquire().await.expect("no error").is_none());
    locks.inspect("a").await.expect("an answer");
    let waiting = locks.lock("a").expect("a name").acquire().wait_forever();
    let waiting = tokio::spawn(waiting);
    drop(inner);
    guard.release().await.expect("held to the end");
    let guard = wait::soon("a waiter", waiting).await.expect("no panic").expect("a lease");
    drop(guard);
    let report = wait::soon("shutdown", locks.shutdown(LONGEST)).await;
    assert_eq!(report.unreleased, []);
}

#[tokio::test]
async fn the_longest_times_of_an_acquire_are_refused_or_taken() {
    let locks = LockRuntime::embedded().expect("settings that can work");
    let lock = locks.lock("a").expect("a name");
    lock.acquire().wait(LONGEST).await.expect_err("out of range");
    lock.acquire().ttl(LONGEST).await.expect_err("out of range");
    lock.acquire().min_hold(LONGEST).await.expect_err("out of range");
    match lock.acquire().max_hold(LONGEST).await {
        Ok(guard) => assert_eq!(guard.release().await.expect("held"), Released::Ended),
        Err(error) => assert!(error.to_string().contains("hold"), "{error}"),
    }
    let once = |name| locks.once(name).expect("a name");
    once("b").window(LONGEST).begin().await.expect_err("out of range");
    once("c").ttl(LONGEST).begin().await.expect_err("out of range");
    LockRuntime::builder().ttl(LONGEST).embedded().expect_err("out of range");
    LockRuntime::builder().wait(LONGEST).embedded().expect_err("out of range");
    LockRuntime::builder().claim_window(LONGEST).embedded().expect("at most the ttl");
    let report = locks.shutdown(LONGEST).await;
    assert_eq!(report.unreleased, []);
}

#[tokio::test]
async fn a_gate_whose_timeouts_are_the_longest_works() {
    let server = RedisServer::start();
    let config = RedisConfig::new(&server.url()).expect("an address");
    let config = config.connect_timeout(LONGEST).command_timeout(LONGEST);
    let gate = RedisGate::new(RedisPool::new(&config).expect("settings that can work"));
    let locks = LockRuntime::connect(&server.url()).await.expect("the server answers");
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    wait::soon("an answer", gate.advance("a", guard.stamp())).await.expect("the first");
    guard.release().await.expect("held to the end");
}

#[test]
fn a_runtime_with_its_own_thread_connects_outside_of_tokio() {
    let server = RedisServer::start();
    let builder = || LockRuntime::builder().own_thread();
    wait::without_tokio(builder().connect(&server.url())).expect("the server answers");
    server.kill();
    let error = wait::without_tokio(builder().connect(&server.url())).expect_err("it was killed");
    assert!(matches!(error, ConnectError::Store(_)), "{error:?}");
}

#[test]
fn a_tokio_runtime_without_timers_is_refused() {
    let server = RedisServer::start();
    let bare = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("tokio");
    let (connected, embedded, own) = bare.block_on(async {
        let own = LockRuntime::builder().own_thread();
        (
            LockRuntime::connect(&server.url()).await,
            LockRuntime::embedded(),
            own.connect(&server.url()).await,
        )
    });
    for error in [connected.expect_err("no timers"), embedded.expect_err("no timers")] {
        assert!(matches!(error, ConnectError::NoTimers), "{error:?}");
        assert!(error.to_string().contains("enable_all()"), "{error}");
    }
    own.expect("its own thread has all it needs");
}

#[test]
fn a_tokio_runtime_without_io_is_refused() {
    let server = RedisServer::start();
    let bare = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("tokio");
    let error = bare.block_on(LockRuntime::connect(&server.url())).expect_err("no IO");
    let ConnectError::Store(error) = &error else { panic!("{error:?}") };
    assert_eq!(error.kind(), StoreErrorKind::Config);
    assert!(error.to_string().contains("enable_all()"), "{error}");
}
