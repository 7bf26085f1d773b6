//! P1 and P8 on a real server: a process that was stopped for longer than its claim window finds an
//! old grant in its socket when it goes on, and does not believe it.
#![expect(clippy::disallowed_methods, reason = "stopped processes take real time")]

use std::time::Duration;

use leasehold::{
    Guard, LockRuntime, LockRuntimeBuilder,
    time::{Clock, SystemClock},
};
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::{Event, History, RedisServer, Violation};

use crate::support::{child, events, line, patient, wait};

const WINDOW: Duration = Duration::from_millis(1_500);

fn builder() -> LockRuntimeBuilder {
    patient::builder().claim_window(WINDOW)
}

async fn acquired(locks: &LockRuntime, worker: u64, tell: impl Fn(Event)) -> Guard {
    let lock = locks.lock("a").expect("a name");
    let asked_at = SystemClock.now();
    tell(Event::Asked { worker, at: asked_at });
    let guard = lock.acquire().wait_forever().await.expect("a lease");
    let (lease, fence, granted_at) = (guard.id(), guard.fence(), SystemClock.now());
    tell(Event::Granted { worker, fence, lease, asked_at, granted_at });
    tell(Event::BelievedUntil { lease, until: granted_at + guard.remaining() });
    guard
}

async fn released(guard: Guard, tell: impl Fn(Event)) {
    tell(Event::Released { lease: guard.id(), at: SystemClock.now() });
    guard.release().await.expect("held to the end");
}

/// What everybody saw, when a waiter in a role stood still as it was granted the lock.
async fn stop_the_next(role: &str) -> History {
    let server = RedisServer::start();
    let history = History::new();
    let tell = |event| history.record(event);
    let first = builder().connect(&server.url()).await.expect("the server answers");
    let second = builder().connect(&server.url()).await.expect("the server answers");
    let guard = acquired(&first, 1, tell).await;
    let mut child = child::spawn(module_path!(), role, &[("url", &server.url())]);
    child.wait_for_line("asks", wait::CEILING);
    line::until_length(&server, 1).await;
    // Otherwise nobody keeps the message for it.
    let channels = || server.query::<Vec<String>>(&["PUBSUB", "CHANNELS"]).len();
    wait::until("the holder and the child listen", || channels() == 2).await;
    child.stop();
    released(guard, tell).await;
    let theirs: u64 = line::granted_at(&server);
    // The stopped one has its turn for a claim window; then the next asks, and gets it.
    let guard = wait::soon("a lease", acquired(&second, 2, tell)).await;
    assert!(line::granted_at(&server) >= theirs + 1_000_000, "the child had its turn");
    child.cont();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(guard.is_held());
    released(guard, tell).await;
    child.wait_for_line("done", wait::CEILING);
    events::read(child.seen()).for_each(tell);
    history
}

#[tokio::test]
async fn an_old_grant_is_not_believed() {
    let history = stop_the_next("honest").await;
    let summary = history.check_strictly().expect("one believer");
    assert_eq!((summary.leases, summary.released), (3, 3));
}

/// The control: counted from its arrival, the old grant makes a believer beside the other.
#[tokio::test]
async fn control_a_grant_counted_from_its_arrival_makes_two_believers() {
    let violations = stop_the_next("credulous").await.check_strictly().expect_err("two believers");
    let two = |violation: &Violation| matches!(violation, Violation::TwoBelievers(_));
    assert!(violations.iter().any(two), "{violations:?}");
}

#[test]
fn child_program() {
    if let Some(role) = child::role() {
        child::run(wait_and_hold(role == "credulous"));
    }
}

async fn wait_and_hold(credulous: bool) {
    let mut rules = Rules::default();
    if credulous {
        rules.push_counts_from = |_, arrived_at| arrived_at;
    }
    let locks = builder().seam(rules).connect(&child::arg("url")).await;
    let locks = locks.expect("the server answers");
    println!("asks");
    let guard = acquired(&locks, 3, events::tell).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    events::tell(Event::Released { lease: guard.id(), at: SystemClock.now() });
    // A lease that was never there cannot be released.
    drop(guard.release().await);
    println!("done");
}
