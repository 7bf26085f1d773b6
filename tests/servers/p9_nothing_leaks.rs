//! P9 on a real server: after a storm of acquires that end in every way, nothing is left.
#![expect(clippy::disallowed_methods, reason = "cancels at random times, in real time")]

use std::time::Duration;

use leasehold::{LockRuntime, ReentrantLock};
use leasehold_core::{Entropy, SystemEntropy};
use leasehold_testkit::RedisServer;
use tokio::task::JoinSet;

use crate::support::{cancel, lease, patient, wait};

const TASKS: usize = 32;
const ROUNDS: usize = 30;
/// Few enough to be contended.
const NAMES: usize = 8;

async fn connect(server: &RedisServer, own_thread: bool) -> LockRuntime {
    let builder = patient::builder().service("storm");
    let builder = if own_thread { builder.own_thread() } else { builder };
    builder.connect(&server.url()).await.expect("the server answers")
}

/// One acquire that ends in one way or another.
async fn round(lock: &ReentrantLock, entropy: &SystemEntropy) {
    let delay = |longest: u64| Duration::from_micros(longest).mul_f64(entropy.fraction());
    let acquire = lock.acquire().wait(Duration::from_secs(20));
    match (entropy.fraction() * 6.0).floor() {
        // Cancelled at any point, or dropped when it was not.
        0.0 => drop(cancel::after(delay(3_000), acquire).await),
        1.0 => {
            let guard = acquire.await.expect("a lease");
            tokio::time::sleep(delay(1_000)).await;
            guard.release().await.expect("held to the end");
        }
        2.0 => {
            let guard = acquire.await.expect("a lease");
            drop(guard.reenter().await.expect("the lease is held"));
            // A re-entry and a release that are cancelled.
            drop(cancel::after(delay(200), guard.reenter()).await);
            drop(cancel::after(delay(200), guard.release()).await);
        }
        3.0 => {
            let body = async |_| {
                tokio::time::sleep(delay(1_000)).await;
                if entropy.fraction() < 0.5 { Err("the body's own") } else { Ok(()) }
            };
            drop(acquire.with(body).await);
        }
        4.0 => {
            let never = async |_| std::future::pending::<Result<(), ()>>().await;
            drop(cancel::after(delay(5_000), acquire.with(never)).await);
        }
        _ => drop(lock.try_acquire().await.expect("an answer")),
    }
}

async fn storm(locks: &LockRuntime) {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let lock = |i| locks.lock(format!("storm/{}", i % NAMES)).expect("a name");
        let locks: Vec<_> = (0..ROUNDS).map(|i| lock(task + i)).collect();
        tasks.spawn(async move {
            let entropy = SystemEntropy;
            for lock in &locks {
                round(lock, &entropy).await;
            }
        });
    }
    tasks.join_all().await;
}

fn keys(server: &RedisServer, pattern: &str) -> usize {
    server.query::<Vec<String>>(&["KEYS", pattern]).len()
}

fn connections(server: &RedisServer) -> usize {
    let list: String = server.query(&["CLIENT", "LIST"]);
    list.lines().filter(|line| line.contains("name=leasehold:storm")).count()
}

fn channels(server: &RedisServer) -> Vec<String> {
    server.query(&["PUBSUB", "CHANNELS"])
}

async fn nothing_is_left(own_thread: bool) {
    let server = RedisServer::start();
    let locks = connect(&server, own_thread).await;
    wait::soon("the end of the storm", storm(&locks)).await;
    let held = locks.lock("held").expect("a name").acquire().await.expect("a lease");
    locks.inspect("held").await.expect("an answer");
    assert!(connections(&server) > 0);

    let report = locks.shutdown(wait::CEILING).await;
    assert_eq!((report.held, report.unreleased), (1, Vec::new()));
    assert!(!held.is_held());
    assert_eq!(lease::in_use(&server), [""; 0]);
    // One key with a counter for each name, and marks of withdrawn acquires.
    assert_eq!(keys(&server, "*:lease"), NAMES + 1);
    assert_eq!(keys(&server, "*"), keys(&server, "*:lease") + keys(&server, "*:withdrawn"));
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    // One subscription, however many names there were; it goes with its runtime.
    assert_eq!(channels(&server), [format!("leasehold:runtime:{}", locks.id())]);

    drop((locks, held));
    wait::until("the connections are closed", || connections(&server) == 0).await;
    assert_eq!(channels(&server), [""; 0]);
}

#[tokio::test]
async fn a_storm_leaves_nothing() {
    nothing_is_left(false).await;
}

#[tokio::test]
async fn a_storm_leaves_nothing_of_a_runtime_with_its_own_thread() {
    nothing_is_left(true).await;
}

#[tokio::test]
async fn guards_dropped_without_shutdown_leave_nothing_either() {
    let server = RedisServer::start();
    let locks = connect(&server, false).await;
    let mut guards = Vec::new();
    for i in 0..100 {
        guards.push(locks.lock(format!("n{i}")).expect("a name").acquire().await.expect("a lease"));
    }
    assert_eq!(lease::held(&server).len(), 100);
    // The runtime first: what it has still to do outlives it.
    drop(locks);
    drop(guards);
    wait::until("the leases are released", || lease::held(&server).is_empty()).await;
    wait::until("the connections are closed", || connections(&server) == 0).await;
}
