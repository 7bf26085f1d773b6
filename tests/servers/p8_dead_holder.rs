//! P8 on a real server: what a killed process held or waited for is free again by itself.
#![expect(clippy::disallowed_methods, reason = "killed processes take real time")]

use std::time::Duration;

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{LockText, RedisServer};

use crate::support::{child, lease, patient, wait};

const TTL: Duration = Duration::from_secs(4);
const LEASE: &str = "leasehold:{a}:lease";
const QUEUE: &str = "leasehold:{a}:queue";
const WAITERS: &str = "leasehold:{a}:waiters";
/// As it is by default.
const CLAIM_WINDOW: Duration = Duration::from_secs(3);

async fn runtime_at(url: &str) -> LockRuntime {
    patient::builder().ttl(TTL).connect(url).await.expect("the server answers")
}

async fn take(locks: &LockRuntime) -> Guard {
    let lock = locks.lock("a").expect("a name");
    wait::soon("a lease", lock.acquire()).await.expect("a lease")
}

/// The server's time and the end of the present lease by it, in microseconds.
fn expiry(server: &RedisServer) -> (u64, u64) {
    lease::expiry(server, LEASE).expect("somebody holds it")
}

#[tokio::test]
async fn a_killed_holder_frees_within_its_ttl() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let mut child = child::spawn(module_path!(), "hold", &[("url", &server.url())]);
    child.wait_for_line("renewed", wait::CEILING);
    child.kill();
    let (killed_at, ends_at) = expiry(&server);
    // The server counts whole milliseconds, from the next one on.
    assert!(ends_at <= killed_at + as_micros(TTL) + 1_000);

    let guard = take(&locks).await;
    let granted_at = lease::granted_at(&server, LEASE);
    // The server keeps times to live in whole milliseconds.
    assert!(granted_at + 2_000 >= ends_at, "{} µs too early", ends_at - granted_at);
    let late = granted_at.saturating_sub(ends_at);
    assert!(late < as_micros(Duration::from_secs(20)), "{late} µs late");
    guard.release().await.expect("a lease that was held to the end");
}

/// Holds the lock while a process that waits for it is killed.
async fn beside_a_killed_waiter(server: &RedisServer, locks: &LockRuntime) -> Guard {
    let guard = take(locks).await;
    let mut child = child::spawn(module_path!(), "wait", &[("url", &server.url())]);
    child.wait_for_line("waiting", wait::CEILING);
    child.kill();
    let left = || server.query::<String>(&["CLIENT", "LIST"]).contains("leasehold:killed");
    wait::until("the dead process' connections are closed", || !left()).await;
    assert_eq!(keys(server), [LEASE, QUEUE, WAITERS]);
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    guard
}

fn keys(server: &RedisServer) -> Vec<String> {
    let mut keys: Vec<String> = server.query(&["KEYS", "*"]);
    keys.sort();
    keys
}

fn assert_only_the_counter_is_left(server: &RedisServer) {
    assert_eq!(keys(server), [LEASE]);
    assert!(!lease::is_held(server, LEASE));
}

fn time(server: &RedisServer) -> u64 {
    let [seconds, micros]: [u64; 2] = server.query(&["TIME"]);
    seconds * 1_000_000 + micros
}

#[tokio::test]
async fn a_killed_waiter_delays_by_its_claim_window_at_most() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let guard = beside_a_killed_waiter(&server, &locks).await;
    let dead = server.query::<Vec<String>>(&["ZRANGE", QUEUE, "0", "-1"]).remove(0);
    guard.release().await.expect("a lease that was held to the end");
    // It is its turn, although nobody is there to take it.
    let holder = LockText::of(&server, LEASE).lease().holder.clone();
    assert!(holder.starts_with(&dead), "{holder}");
    let (now, ends_at) = expiry(&server);
    assert!(ends_at <= now + as_micros(CLAIM_WINDOW) + 1_000);
    let next = take(&locks).await;
    let granted_at = lease::granted_at(&server, LEASE);
    assert!(granted_at + 2_000 >= ends_at, "{} µs too early", ends_at - granted_at);
    let late = granted_at.saturating_sub(ends_at);
    assert!(late < as_micros(Duration::from_secs(20)), "{late} µs late");
    next.release().await.expect("a lease that was held to the end");
    assert_only_the_counter_is_left(&server);
}

#[tokio::test]
async fn a_waiter_that_was_killed_long_ago_delays_nobody() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let guard = beside_a_killed_waiter(&server, &locks).await;
    let killed_at = time(&server);
    wait::until("its claim window is over", || time(&server) > killed_at + as_micros(CLAIM_WINDOW))
        .await;
    guard.release().await.expect("a lease that was held to the end");
    // At once.
    let next = locks.lock("a").expect("a name").try_acquire().await.expect("an answer");
    next.expect("nobody is there").release().await.expect("a lease that was held to the end");
    assert_only_the_counter_is_left(&server);
}

#[test]
fn child_program() {
    match child::role().as_deref() {
        Some("hold") => child::run(hold()),
        Some("wait") => child::run(wait_in_vain()),
        _ => {}
    }
}

/// Holds the lock, through a renewal at least, until it is killed.
async fn hold() {
    let locks = runtime_at(&child::arg("url")).await;
    let guard = take(&locks).await;
    while guard.remaining() > TTL.mul_f64(0.9) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    wait::until("a renewal", || guard.remaining() > TTL.mul_f64(0.9)).await;
    println!("renewed");
    let end = guard.lost().await;
    println!("ended: {end:?}");
}

/// Waits for the lock until it is killed.
async fn wait_in_vain() {
    let locks = patient::builder().service("killed").connect(&child::arg("url")).await;
    let lock = locks.expect("the server answers").lock("a").expect("a name");
    let waiting = tokio::spawn(lock.acquire().wait_forever().into_future());
    tokio::time::sleep(Duration::from_millis(300)).await;
    println!("waiting");
    println!("ended: {:?}", waiting.await);
}

fn as_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("a short time")
}
