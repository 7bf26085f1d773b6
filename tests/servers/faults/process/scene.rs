use std::time::Duration;

use leasehold::{Guard, LockRuntime, LockRuntimeBuilder};
use leasehold_testkit::{ChildProcess, LockText, RedisServer};
use redis::aio::MultiplexedConnection;

use super::roles;
use crate::support::{child, idle, lease, patient, raw, wait};

/// The role of a child that holds the lock `a`, and gives it back when it is told to go on.
pub(super) const HOLDER: &str = "holder";
/// The role of a child that waits for the lock `a`, then does the same.
pub(super) const WAITER: &str = "waiter";
/// The role of a child that keeps the lock `a` idle.
pub(super) const IDLER: &str = "idler";

/// The keys of the lock `a`.
pub(super) const LEASE: &str = "leasehold:{a}:lease";
pub(super) const QUEUE: &str = "leasehold:{a}:queue";

/// The server keeps times to live in whole milliseconds.
const GRAIN: u64 = 2_000;
/// Far more than any server or process takes, in microseconds.
const LATE: u64 = 20_000_000;

/// A builder with a ttl, and claims as long as that or a second.
pub(super) fn builder(ttl: Duration) -> LockRuntimeBuilder {
    patient::builder().ttl(ttl).claim_window(ttl.min(Duration::from_secs(1)))
}

pub(super) async fn runtime_at(url: &str, ttl: Duration) -> LockRuntime {
    builder(ttl).connect(url).await.expect("the server answers")
}

/// Waits for a lock as long as need be.
pub(super) async fn take(locks: &LockRuntime, name: &str) -> Guard {
    let acquiring = locks.lock(name).expect("a name").acquire().wait(wait::CEILING);
    acquiring.await.expect("a lease")
}

/// Starts a child of a role, which knows the server, a ttl and a mode.
pub(super) fn spawn(role: &str, server: &RedisServer, ttl: Duration, mode: &str) -> ChildProcess {
    let ttl = ttl.as_millis().to_string();
    let args = [("url", &*server.url()), ("ttl", &ttl), ("mode", mode), ("go", &key(role))];
    child::spawn(roles::CHILD, role, &args)
}

/// Starts a child of a role, and waits until it holds the lock.
pub(super) fn holder(role: &str, server: &RedisServer, ttl: Duration, mode: &str) -> ChildProcess {
    let mut child = spawn(role, server, ttl, mode);
    child.wait_for_line("held ", wait::CEILING);
    child
}

/// Starts a child of a role, and waits until it keeps the lock idle.
pub(super) fn idler(role: &str, server: &RedisServer, ttl: Duration, mode: &str) -> ChildProcess {
    let mut child = spawn(role, server, ttl, mode);
    child.wait_for_line("idle", wait::CEILING);
    child
}

/// Starts a child that waits for the lock; it stands in the queue behind so many others.
pub(super) fn waiter(server: &RedisServer, ttl: Duration, behind: u64) -> ChildProcess {
    let child = spawn(WAITER, server, ttl, "");
    wait::block_until("it waits", || server.query::<u64>(&["ZCARD", QUEUE]) == behind + 1);
    child
}

/// The key that tells the children of a role to go on.
fn key(role: &str) -> String {
    format!("go:{role}")
}

/// Tells the children of a role to go on.
pub(super) fn go(server: &RedisServer, role: &str) {
    server.command(&["SET", &key(role), "1", "PX", "60000"]);
}

/// Blocks this thread until so much of the server's time has passed since.
pub(super) fn until_passed(server: &RedisServer, since: u64, length: Duration) {
    let at = since + micros(length);
    wait::block_until("time passes", || server.micros() > at);
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("a short time")
}

/// The end of the present lease by the server's time, in microseconds.
pub(super) fn ends_at(server: &RedisServer) -> u64 {
    let (_, ends_at) = lease::expiry(server, LEASE).expect("somebody holds it");
    ends_at
}

/// When the present lease was granted, by the server's time in microseconds.
pub(super) fn granted_at(server: &RedisServer) -> u64 {
    lease::granted_at(server, LEASE)
}

/// By how many milliseconds the present lease came after the last one's end, which is soon.
pub(super) fn late(server: &RedisServer, ended_at: u64) -> u64 {
    let granted_at = granted_at(server);
    assert!(granted_at + GRAIN >= ended_at, "{} µs too early", ended_at - granted_at);
    let late = granted_at.saturating_sub(ended_at);
    assert!(late < LATE, "{late} µs late");
    late / 1_000
}

/// Nobody holds a lock or waits for it, and no key lives for ever.
pub(super) fn assert_clean(server: &RedisServer) {
    assert_eq!(lease::in_use(server), [""; 0]);
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

/// A child that holds the lock `a`.
pub(super) struct Holding {
    pub(super) locks: LockRuntime,
    pub(super) guard: Guard,
    pub(super) raw: MultiplexedConnection,
}

/// The time to live that a child was given.
pub(super) fn ttl() -> Duration {
    Duration::from_millis(child::arg("ttl").parse().expect("a number"))
}

/// In a child: takes the lock, and tells so.
pub(super) async fn hold(builder: LockRuntimeBuilder) -> Holding {
    let url = child::arg("url");
    let locks = builder.connect(&url).await.expect("the server answers");
    let (guard, raw) = (take(&locks, "a").await, raw::connect(&url).await);
    println!("held {}", guard.id());
    Holding { locks, guard, raw }
}

/// In a child: waits until it is told to go on.
pub(super) async fn until_go(raw: &mut MultiplexedConnection) {
    let key = child::arg("go");
    while !redis::cmd("EXISTS").arg(&key).query_async::<bool>(raw).await.expect("an answer") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The program of a [`HOLDER`]; it tells how its release ended.
pub(super) async fn hold_and_release() {
    let mut holding = hold(builder(ttl())).await;
    until_go(&mut holding.raw).await;
    let first_look = if holding.guard.is_held() { "held" } else { "lost" };
    println!("looked {first_look}");
    if !holding.guard.is_held() {
        println!("told {:?}", holding.guard.lost().await);
    }
    let inner = holding.guard.reenter().await.map(|inner| inner.fence());
    println!("reentered {inner:?}");
    println!("released {:?}", holding.guard.release().await);
}

/// The program of an [`IDLER`].
pub(super) async fn keep_idle() {
    let builder = idle::builder(ttl(), idle::longest(ttl()));
    let locks = builder.connect(&child::arg("url")).await.expect("the server answers");
    idle::make_idle(&locks, "a").await;
    println!("idle");
    std::future::pending::<()>().await;
}

/// The program of a [`WAITER`]; it tells when it was granted the lock, by the server's time.
pub(super) async fn wait_and_hold() {
    let mut holding = hold(builder(ttl()).service("waits")).await;
    let text: String =
        redis::cmd("GET").arg(LEASE).query_async(&mut holding.raw).await.expect("an answer");
    let text = LockText::read(&text).expect("the text of a lock");
    println!("granted at {}", text.lease().since);
    until_go(&mut holding.raw).await;
    println!("released {:?}", holding.guard.release().await);
}
