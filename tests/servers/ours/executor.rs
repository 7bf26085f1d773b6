//! Code that blocks the executor, and an executor that nobody drives.
#![expect(clippy::disallowed_methods, reason = "code that blocks its thread")]

use std::{thread, time::Duration};

use leasehold::{
    LeaseEnd, LockRuntime, LockRuntimeBuilder, LossReason,
    error::AcquireError,
    fencing::{FenceGate, RedisGate},
    redis::{RedisConfig, RedisPool},
};
use leasehold_testkit::{Log, RedisServer};
use tokio::{join, runtime::Builder, task::yield_now};

use super::is_ours;
use crate::support::{
    patient,
    wait::{self, without_tokio},
};

/// The time of a command is over long before the end of it.
const STALL: Duration = Duration::from_secs(4);
const REMEDIES: [&str; 3] = ["stood still", "spawn_blocking", "own_thread()"];

fn builder() -> LockRuntimeBuilder {
    // Commands have a second.
    LockRuntime::builder().command_timeout(Duration::from_secs(1)).ttl(Duration::from_secs(2))
}

/// Blocks the thread of its caller as soon as others have been polled.
async fn block() {
    yield_now().await;
    thread::sleep(STALL);
}

#[test]
fn a_blocked_executor_is_told_as_that() {
    let server = RedisServer::start();
    let (log, _collecting) = Log::as_services_see_it();
    wait::on_one_thread(async {
        let locks = builder().connect(&server.url()).await.expect("the server answers");
        let lock = locks.lock("a").expect("a name");
        let (outcome, ()) = join!(lock.try_acquire(), async { thread::sleep(STALL) });
        let error = outcome.expect_err("nobody read the answer");
        assert_eq!((error.status(), error.retry_after().is_some()), (503, true), "{error}");
        is_ours(&error.to_string(), &REMEDIES);
        is_ours(&locks.health().to_string(), &[]);
    });
    for line in log.lines() {
        is_ours(&line, &[]);
    }
}

/// Before the answer to its first command, and while others wait for theirs.
#[test]
fn a_wait_whose_executor_is_blocked_is_told_as_that() {
    let server = RedisServer::start();
    wait::on_one_thread(async {
        let locks =
            builder().own_thread().connect(&server.url()).await.expect("the server answers");
        let lock = locks.lock("a").expect("a name");
        let waiting = async { lock.acquire().wait(Duration::from_secs(1)).await };
        let (outcome, ()) = join!(waiting, async { thread::sleep(STALL) });
        // Its answer may have been there just in time.
        if let Err(error) = outcome {
            assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
            is_ours(&error.to_string(), &REMEDIES);
        }
    });
}

#[test]
fn a_lease_that_is_lost_while_the_executor_is_blocked_says_so() {
    let server = RedisServer::start();
    let (log, _collecting) = Log::as_services_see_it();
    wait::on_one_thread(async {
        let locks = patient::builder().ttl(Duration::from_secs(2)).connect(&server.url()).await;
        let locks = locks.expect("the server answers");
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        block().await;
        assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::Expired));
        let error = guard.release().await.expect_err("it is lost");
        is_ours(&error.to_string(), &REMEDIES);
    });
    let lost = log.with("lease lost");
    let [line] = &lost[..] else { panic!("{lost:?}") };
    is_ours(line, &REMEDIES);
}

/// The control: this process runs all the time, and the server does not.
#[test]
fn a_server_that_is_stopped_is_silent() {
    let server = RedisServer::start();
    let (log, _collecting) = Log::as_services_see_it();
    wait::on_one_thread(async {
        let locks = builder().connect(&server.url()).await.expect("the server answers");
        let guard = locks.lock("held").expect("a name").acquire().await.expect("a lease");
        server.stop_signal();
        let lock = locks.lock("a").expect("a name");
        let error = lock.try_acquire().await.expect_err("nobody answers").to_string();
        assert!(error.contains("the server has not answered for"), "{error}");
        assert!(!error.contains("spawn_blocking"), "{error}");
        assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::Expired));
        let health = locks.health().to_string();
        assert!(health.contains("the server has not answered for"), "{health}");
        let lost = guard.release().await.expect_err("it is lost").to_string();
        assert!(lost.contains("the server was out of reach"), "{lost}");
        server.cont_signal();
    });
    assert!(log.tells("the server was out of reach"), "{:?}", log.lines());
}

/// Asked by a readiness probe elsewhere, while nothing uses a lock.
#[test]
fn an_executor_that_nobody_drives_is_not_ready() {
    let server = RedisServer::start();
    let home = Builder::new_current_thread().enable_all().build().expect("a tokio runtime");
    let locks = home.block_on(async { builder().connect(&server.url()).await });
    let locks = locks.expect("the server answers");
    assert!(locks.health().is_ready(), "{}", locks.health());
    wait::on_one_thread(wait::until("red", || !locks.health().is_ready()));
    let words = ["this process has heard nothing for", "nothing drives", "own_thread()"];
    is_ours(&locks.health().to_string(), &words);
    home.block_on(wait::until("green", || locks.health().is_ready()));
}

/// Nothing that is asked of it hangs.
#[test]
fn an_executor_that_nobody_drives_is_told_as_that() {
    let server = RedisServer::start();
    let idle = Builder::new_current_thread().enable_all().build().expect("a tokio runtime");
    let locks = idle.block_on(async { builder().connect(&server.url()).await });
    let locks = locks.expect("the server answers");
    let gate = idle.block_on(async {
        let config = RedisConfig::new(&server.url()).expect("the server's address is one");
        let config = config.command_timeout(Duration::from_secs(1));
        RedisGate::new(RedisPool::new(&config).expect("good settings"))
    });
    let [guard, other] = ["g", "h"].map(|name| locks.lock(name).expect("a name"));
    let guard = idle.block_on(async { guard.acquire().await }).expect("a lease");
    let other = idle.block_on(async { other.acquire().await }).expect("a lease");

    let words = ["tokio runtime", "nothing drives it", "own_thread()"];
    let lock = locks.lock("a").expect("a name");
    let told = without_tokio(lock.try_acquire()).expect_err("nobody reads the answer");
    is_ours(&told.to_string(), &words);
    let waiting = lock.acquire().outage_patience(Duration::from_secs(1));
    is_ours(&without_tokio(waiting).expect_err("nobody reads the answer").to_string(), &words);
    is_ours(&locks.health().to_string(), &words);
    is_ours(&without_tokio(locks.inspect("a")).expect_err("as above").to_string(), &words);
    is_ours(&without_tokio(locks.force_release("a")).expect_err("as above").to_string(), &words);
    let mut list = locks.list("*").expect("a pattern");
    let listed = without_tokio(list.next()).expect("one error").expect_err("as above");
    is_ours(&listed.to_string(), &words);
    is_ours(
        &without_tokio(gate.admit("r", guard.stamp())).expect_err("as above").to_string(),
        &words,
    );
    assert!(without_tokio(locks.diagnose()).to_string().contains("stands still"));
    drop(without_tokio(locks.wait_graph()));
    // Its lease is over by now, and nobody has renewed it.
    let released = without_tokio(other.release()).expect_err("it is lost");
    is_ours(&released.to_string(), &REMEDIES);
    assert_eq!(without_tokio(locks.drain(Duration::from_millis(100))).held, 0);
    drop(guard);
    drop(without_tokio(locks.shutdown(Duration::from_millis(100))));
}
