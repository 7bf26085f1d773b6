//! P4 on a real server: an acquire that is cancelled at any time leaves the lock free.

use std::{pin::pin, task::Poll, time::Duration};

use leasehold::{LockRuntime, ReentrantLock};
use leasehold_testkit::RedisServer;

use crate::support::{cancel, lease, patient, wait};

/// Far longer than these tests wait for a lock: what expires by itself does not help them.
const TTL: Duration = Duration::from_secs(600);

const LEASE: &str = "leasehold:{a}:lease";

struct Scene {
    server: RedisServer,
    locks: LockRuntime,
    lock: ReentrantLock,
}

async fn scene() -> Scene {
    let server = RedisServer::builder().tcp().start();
    let builder = patient::builder().ttl(TTL).claim_window(Duration::from_millis(300));
    let locks = builder.connect(&server.url()).await.expect("the server answers");
    let lock = locks.lock("a").expect("a name");
    Scene { server, locks, lock }
}

/// Delays from nothing to longer than an acquire takes.
fn delays() -> impl Iterator<Item = Duration> {
    (0..80).map(|i| i * 10).chain((0..12).map(|i| 800 + i * 250)).map(Duration::from_micros)
}

impl Scene {
    /// Another gets the lock, well before a forgotten lease would have expired.
    async fn is_free_soon(&self) {
        let other = self.lock.acquire().wait(wait::CEILING).await;
        other.expect("the lock is free soon").release().await.expect("held to the end");
    }

    async fn nothing_is_left(self) {
        let report = self.locks.shutdown(wait::CEILING).await;
        assert_eq!((report.held, report.unreleased), (0, Vec::new()));
        assert!(!lease::is_held(&self.server, LEASE));
        assert_eq!(self.server.keys_without_ttl(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_free_lock() {
    let scene = scene().await;
    let (mut cancelled, mut acquired) = (0, 0);
    for delay in delays() {
        match cancel::after(delay, scene.lock.acquire()).await {
            Some(guard) => {
                drop(guard.expect("a lease"));
                acquired += 1;
            }
            None => cancelled += 1,
        }
        scene.is_free_soon().await;
    }
    assert!(cancelled > 0 && acquired > 0, "{cancelled} cancelled, {acquired} acquired");
    scene.nothing_is_left().await;
}

/// On one thread, so that the first poll cannot see an answer.
#[tokio::test]
async fn a_future_that_nobody_polls_holds_nothing_for_long() {
    let scene = scene().await;
    // The server learns the script.
    scene.is_free_soon().await;
    let mut forgotten = pin!(scene.lock.acquire());
    let first = std::future::poll_fn(|cx| Poll::Ready(forgotten.as_mut().poll(cx))).await;
    assert!(first.is_pending());
    wait::until("the command is executed", || lease::is_held(&scene.server, LEASE)).await;
    scene.is_free_soon().await;
    // It is polled again after all, and begins anew.
    let guard = wait::soon("a lease", forgotten).await.expect("a lease");
    guard.release().await.expect("held to the end");
    scene.nothing_is_left().await;
}
