//! P5 on real servers and processes: a holder that loses its lease is told, and cannot write any more.
#![expect(clippy::disallowed_methods, reason = "paused processes take real time")]

use std::time::Duration;

use leasehold::{
    FenceToken, ForceReleased, Guard, LeaseEnd, LeaseState, LockRuntime, LossReason,
    error::{AcquireError, LeaseLost, ReenterError, ReleaseError, WithError},
    time::{Clock, SystemClock},
};
use leasehold_testkit::RedisServer;

use crate::support::{child, lease, patient, raw, storage, wait};

const TTL: Duration = Duration::from_secs(5);
const DATA_LOST: LeaseEnd = LeaseEnd::Lost(LossReason::DataLost);
const FORCED: LeaseEnd = LeaseEnd::Lost(LossReason::ForceReleased);

async fn runtime_at(server: &RedisServer) -> LockRuntime {
    patient::builder().ttl(TTL).connect(&server.url()).await.expect("the server answers")
}

async fn take(locks: &LockRuntime) -> Guard {
    let lock = locks.lock("a").expect("a name");
    wait::soon("a lease", lock.acquire()).await.expect("a lease")
}

/// All that a guard can be asked says that its lease was lost for `reason`.
async fn all_say_lost(guard: Guard, reason: LossReason) {
    assert_eq!(guard.lease().state(), LeaseState::Lost(reason));
    assert!(!guard.is_held() && guard.remaining().is_zero());
    assert!(guard.cancellation().is_cancelled());
    let reentered = guard.reenter().await;
    assert!(matches!(reentered, Err(ReenterError::Lost(_))), "{reentered:?}");
    let released = guard.release().await;
    assert!(
        matches!(released, Err(ReleaseError::Lost(LeaseLost { reason: told, .. })) if told == reason),
        "{released:?}"
    );
}

/// Stops a process that holds a lease until another has written, and lets it write after that.
async fn write_after_a_pause(role: &str) -> (String, Vec<String>) {
    let (server, storage) = (RedisServer::start(), RedisServer::start());
    let args = [("url", server.url()), ("storage", storage.url())];
    let args = args.each_ref().map(|(key, value)| (*key, value.as_str()));
    let mut child = child::spawn(module_path!(), role, &args);
    let fence = child.wait_for_line("held ", wait::CEILING).parse::<FenceToken>();
    child.stop();

    let guard = take(&runtime_at(&server).await).await;
    assert!(guard.fence() > fence.expect("a fence"));
    let gate = storage::gate_at(&storage.url());
    gate.set("{v}", "new", guard.stamp()).await.expect("the newest holder writes");

    storage.command(&["SET", "go", "1"]);
    child.cont();
    child.wait_for_line("end", wait::CEILING);
    assert!(guard.is_held(), "the old holder's release ended another's lease");
    guard.release().await.expect("a lease that was held to the end");
    (storage.query(&["GET", "{v}"]), child.seen().to_vec())
}

fn says(lines: &[String], line: &str) -> bool {
    lines.iter().any(|said| said == line)
}

#[tokio::test]
async fn a_stopped_holder_sees_its_loss_and_cannot_write() {
    let (value, said) = write_after_a_pause("gated").await;
    assert_eq!(value, "new");
    for line in ["first look: lost", "lost(): lost", "write: refused", "release: lost"] {
        assert!(says(&said, line), "{line:?} is not among {said:#?}");
    }
}

#[tokio::test]
async fn control_a_stopped_holder_that_asks_nobody_overwrites_the_value() {
    let (value, said) = write_after_a_pause("ungated").await;
    assert_eq!(value, "late");
    assert!(says(&said, "write: accepted"), "{said:#?}");
}

#[test]
fn child_program() {
    if let Some(role) = child::role() {
        child::run(hold_over_a_pause(role == "gated"));
    }
}

/// Holds a lease until this process was stopped and goes on, then writes and releases.
async fn hold_over_a_pause(gated: bool) {
    let locks = patient::builder().ttl(TTL).connect(&child::arg("url")).await;
    let locks = locks.expect("the server answers");
    let guard = take(&locks).await;
    let lost = tokio::spawn(guard.lost());
    let storage = child::arg("storage");
    let (gate, mut raw) = (storage::gate_at(&storage), raw::connect(&storage).await);
    println!("held {}", guard.fence());
    // Set while this process stands still: what follows it is the first look after the pause.
    while !redis::cmd("EXISTS").arg("go").query_async::<bool>(&mut raw).await.expect("an answer") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    println!("first look: {}", if guard.is_held() { "held" } else { "lost" });
    match wait::soon("the end of a lost lease", lost).await {
        Ok(LeaseEnd::Lost(_)) => println!("lost(): lost"),
        other => println!("lost(): {other:?}"),
    }
    let written = if gated {
        gate.set("{v}", "late", guard.stamp()).await.is_ok()
    } else {
        redis::cmd("SET").arg("{v}").arg("late").exec_async(&mut raw).await.is_ok()
    };
    println!("write: {}", if written { "accepted" } else { "refused" });
    match guard.release().await {
        Err(ReleaseError::Lost(_)) => println!("release: lost"),
        other => println!("release: {other:?}"),
    }
    println!("end");
}

#[tokio::test]
async fn a_stopped_server_is_told_as_loss_before_it_can_give_the_lease_on() {
    let server = RedisServer::start();
    let (locks, others) = (runtime_at(&server).await, runtime_at(&server).await);
    let guard = take(&locks).await;
    server.stop_signal();
    // The server stands still, so whenever this resolves, nobody else has the lease.
    let end = wait::soon("the local deadline", guard.lost()).await;
    server.cont_signal();
    assert_eq!(end, LeaseEnd::Lost(LossReason::Expired));
    let next = take(&others).await;
    assert!(next.fence() > guard.fence());
    all_say_lost(guard, LossReason::Expired).await;
    assert!(next.is_held());
}

#[tokio::test]
async fn belief_ends_before_the_server_forgets() {
    let server = RedisServer::start();
    let locks = runtime_at(&server).await;
    let lock = locks.lock("a").expect("a name");
    let guard = lock.acquire().renew(false).ttl(Duration::from_secs(20)).await.expect("a lease");
    let clock = SystemClock;
    // From both sides, the best of many looks: a look may be interrupted for any time.
    let believes = (0..200).map(|_| {
        let remaining = guard.remaining();
        clock.now() + remaining
    });
    let believes_until = believes.min().expect("many looks");
    let expires = (0..50).map(|_| {
        let asked_at = clock.now();
        asked_at + lease::left(&server, "leasehold:{a}:lease").expect("it is held")
    });
    let expires_at = expires.max().expect("many looks");
    assert!(believes_until < expires_at, "{believes_until:?}, {expires_at:?}");
}

#[tokio::test]
async fn flushall_is_told_at_the_next_renewal() {
    let server = RedisServer::start();
    let guard = take(&runtime_at(&server).await).await;
    server.flush_all();
    assert_eq!(wait::soon("the next renewal", guard.lost()).await, DATA_LOST);
    all_say_lost(guard, LossReason::DataLost).await;
}

#[tokio::test]
async fn a_restart_without_data_is_told_at_the_next_renewal() {
    let server = RedisServer::start();
    let (locks, others) = (runtime_at(&server).await, runtime_at(&server).await);
    let guard = take(&locks).await;
    server.restart();
    assert_eq!(wait::soon("the next renewal", guard.lost()).await, DATA_LOST);
    assert!(take(&others).await.fence() > guard.fence());
    all_say_lost(guard, LossReason::DataLost).await;
}

/// By a message: the next renewal would come after minutes.
#[tokio::test]
async fn a_force_release_is_told_at_once() {
    let server = RedisServer::start();
    let builder = || patient::builder().ttl(Duration::from_secs(24 * 3600));
    let locks = builder().connect(&server.url()).await.expect("the server answers");
    let guard = take(&locks).await;
    let channels = || server.query::<Vec<String>>(&["PUBSUB", "CHANNELS"]).len();
    wait::until("it listens", || channels() == 1).await;
    let operator = builder().connect(&server.url()).await.expect("the server answers");
    operator.force_release("a").await.expect("an answer");
    assert_eq!(wait::soon("the message", guard.lost()).await, FORCED);
    all_say_lost(guard, LossReason::ForceReleased).await;
}

#[tokio::test]
async fn a_force_release_is_told_and_moves_the_fence_on() {
    let server = RedisServer::start();
    let (locks, others) = (runtime_at(&server).await, runtime_at(&server).await);
    let guard = take(&locks).await;
    let waiter = tokio::spawn(async move { (take(&others).await, others) });
    let channels = || server.query::<Vec<String>>(&["PUBSUB", "CHANNELS"]).len();
    wait::until("both listen", || channels() == 2).await;
    let operator = runtime_at(&server).await;
    let released = operator.force_release("a").await.expect("an answer");
    let ForceReleased::Ended { lease, fence: Some(moved_on) } = released else {
        panic!("{released:?}")
    };
    assert_eq!((lease.id, lease.fence), (guard.id(), guard.fence()));
    let (next, _others) = waiter.await.expect("a waiter");
    assert!(guard.fence() < moved_on && moved_on < next.fence());
    assert_eq!(wait::soon("the message", guard.lost()).await, FORCED);
    all_say_lost(guard, LossReason::ForceReleased).await;
    assert!(next.is_held());
    assert_eq!(operator.force_release("b").await.expect("an answer"), ForceReleased::NotHeld);
}

#[tokio::test]
async fn a_closure_is_stopped_when_its_lease_is_lost() {
    let server = RedisServer::start();
    let locks = runtime_at(&server).await;
    let lock = locks.lock("a").expect("a name");
    let body = async |_| {
        server.flush_all();
        std::future::pending::<Result<(), ()>>().await
    };
    let outcome = wait::soon("the next renewal", lock.with(body)).await;
    assert!(
        matches!(outcome, Err(WithError::Lost(LeaseLost { reason: LossReason::DataLost, .. }))),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_owner_that_lost_its_lease_is_told_when_it_acquires_again() {
    let server = RedisServer::start();
    let locks = runtime_at(&server).await;
    let (lock, owner) = (locks.lock("a").expect("a name"), locks.owner());
    let guard = lock.acquire().owner(&owner).await.expect("a lease");
    server.flush_all();
    let again = lock.acquire().owner(&owner).await;
    assert!(matches!(again, Err(AcquireError::Lost(_))), "{again:?}");
    all_say_lost(guard, LossReason::DataLost).await;
}
