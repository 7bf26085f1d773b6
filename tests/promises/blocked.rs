//! A call that waits for long is reported: for what, held by whom, since when; and never by
//! thousands of lines.

use std::{future::IntoFuture, time::Duration};

use leasehold::{Acquire, LockRuntime, ReentrantLock, error::AcquireError};
use leasehold_testkit::{CommandKind, Fault, Log, Rule};
use tokio::task::JoinHandle;

use crate::support::{World, indeterminate, millis, secs};

const TARGET: &str = "leasehold::blocked";

fn lock(locks: &LockRuntime, name: &str) -> ReentrantLock {
    locks.lock(name).unwrap().class("orders")
}

fn reports(log: &Log) -> Vec<String> {
    log.lines().into_iter().filter(|line| line.contains(TARGET)).collect()
}

#[tokio::test]
async fn a_wait_for_another_process_tells_who_holds_the_lock() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let (ours, theirs) = (world.runtime(1), world.start(world.builder(2).service("billing")));
    let held = lock(&theirs, "orders/42").acquire().await.unwrap();
    world.pass(secs(5)).await;
    let waiting = tokio::spawn(lock(&ours, "orders/42").acquire().wait(secs(60)).into_future());
    world.pass(millis(9_900)).await;
    assert_eq!(reports(&log), [""; 0]);
    world.pass(millis(200)).await;
    let lines = reports(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let fence = format!("fence={}", held.fence());
    let told = ["WARN", "lock=orders/42", "class=\"orders\"", "waited=10", "position=next in line"];
    let holder = ["billing", "this_runtime=false", "held_for=15", &fence];
    for words in told.iter().chain(&holder) {
        assert!(lines[0].contains(words), "{words}: {lines:?}");
    }
    // Again whenever the wait has doubled.
    world.pass(secs(29)).await;
    assert_eq!(reports(&log).len(), 2);
    world.pass(secs(15)).await;
    assert_eq!(reports(&log).len(), 3);
    assert_eq!(world.store.executed(CommandKind::Inspect), 3, "one look for each report");
    held.release().await.unwrap();
    world.settle().await;
    waiting.await.unwrap().unwrap().release().await.unwrap();
    world.pass(secs(100)).await;
    assert_eq!(reports(&log).len(), 3);
}

#[tokio::test]
async fn a_wait_for_another_task_tells_its_lease_without_asking_the_server() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    let held = lock(&locks, "orders/42").acquire().await.unwrap();
    let waiting = tokio::spawn(lock(&locks, "orders/42").acquire().wait_forever().into_future());
    world.pass(secs(11)).await;
    let lines = reports(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (lease, fence) = (held.lease().id(), held.fence());
    for words in ["this_runtime=true".into(), format!("lease={lease}"), format!("fence={fence}")] {
        assert!(lines[0].contains(&words), "{words}: {lines:?}");
    }
    assert_eq!(world.store.sent(CommandKind::Inspect), 0);
    drop(held);
    world.settle().await;
    drop(waiting.await);
}

/// A lock that is only kept closed has no holder who could hurry.
#[tokio::test]
async fn a_lock_that_is_kept_closed_is_told_as_such() {
    let world = World::new();
    let (ours, theirs) = (world.runtime(1), world.start(world.builder(2).service("billing")));
    for (keeps, waits, here) in [(&ours, &ours, true), (&theirs, &ours, false)] {
        let (log, _collecting) = Log::of_this_thread();
        let name = format!("kept-{here}");
        let acquire = lock(keeps, &name).acquire().min_hold(secs(60));
        acquire.await.unwrap().release().await.unwrap();
        let waiting = tokio::spawn(lock(waits, &name).acquire().wait_forever().into_future());
        world.pass(secs(11)).await;
        let lines = reports(&log);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let told =
            [&format!("this_runtime={here}"), "kept=true", "opens_in=50s", "opens by itself"];
        for words in told {
            assert!(lines[0].contains(words), "{words}: {lines:?}");
        }
        assert!(!lines[0].contains("find out why"), "{lines:?}");
        waiting.abort();
    }
}

/// The holder is a task of this process, whose turn is not watched here any more.
#[tokio::test]
async fn a_lease_of_this_process_is_never_told_as_one_of_another() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
    // A grant whose answer was lost: the server has the lease, and no task here has it.
    world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Acquire));
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Withdraw).always());
    let trying = tokio::spawn(lock(&locks, "orders/42").acquire().ttl(secs(60)).try_acquire());
    world.pass(secs(2)).await;
    assert!(trying.await.unwrap().is_err());
    let _waits = tokio::spawn(lock(&other, "orders/42").acquire().wait_forever().into_future());
    let _waits = tokio::spawn(lock(&locks, "orders/42").acquire().wait_forever().into_future());
    world.pass(secs(11)).await;
    let lines = reports(&log);
    let told: Vec<bool> = lines.iter().map(|line| line.contains("this_runtime=true")).collect();
    assert_eq!(told, [false, true], "{lines:?}");
}

/// A thousand calls that wait for one lock, and a hundred locks that are stuck.
#[tokio::test]
async fn many_waits_are_reported_by_a_few_lines() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let (ours, theirs) = (world.runtime(1), world.runtime(2));
    let mut held = Vec::new();
    for n in 0..100 {
        held.push(lock(&theirs, &format!("stuck-{n}")).acquire().await.unwrap());
    }
    let waits =
        |name: String| tokio::spawn(lock(&ours, &name).acquire().wait(secs(25)).into_future());
    let crowd = (0..1000).map(|_| waits("stuck-0".into()));
    let mut waiting: Vec<_> = crowd.collect();
    world.pass(secs(11)).await;
    assert_eq!(reports(&log).len(), 1, "of one lock");
    waiting.extend((1..100).map(|n| waits(format!("stuck-{n}"))));
    world.pass(secs(25)).await;
    let lines = reports(&log);
    assert!((8..=25).contains(&lines.len()), "{}", lines.len());
    let left_out = |line: &&String| !line.contains("left_out=0");
    assert!(lines.iter().any(|line| left_out(&line)), "the others are counted: {lines:?}");
    // Each call looks once at its end.
    let looks = world.store.executed(CommandKind::Inspect) - waiting.len();
    assert_eq!(looks, lines.len());
    for one in waiting {
        assert!(one.await.unwrap().is_err());
    }
}

/// A store that does not answer is no holder who blocks, and is told of by others.
#[tokio::test]
async fn an_outage_is_not_reported_as_a_wait() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let (ours, theirs) = (world.runtime(1), world.runtime(2));
    let _held = lock(&theirs, "orders/42").acquire().await.unwrap();
    let waiting = tokio::spawn(lock(&ours, "orders/42").acquire().wait(secs(30)).into_future());
    world.pass(secs(1)).await;
    world.store.inject(Rule::new(Fault::Fail(indeterminate())).always());
    world.pass(secs(15)).await;
    assert_eq!(reports(&log), [""; 0]);
    waiting.abort();
}

/// A service whose followers wait for days, and nothing is wrong with that.
#[tokio::test]
async fn a_wait_that_is_meant_to_be_long_is_not_reported() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let leader = lock(&world.runtime(1), "leader").acquire().await.unwrap();
    let follows = |acquire: Acquire| {
        tokio::spawn(acquire.wait_forever().blocked_after(Duration::MAX).into_future())
    };
    let followers = [2, 3].map(|number| follows(lock(&world.runtime(number), "leader").acquire()));
    let several = world.runtime(4).all(["a", "leader"]).unwrap();
    let several = several.acquire().wait_forever().blocked_after(Duration::MAX);
    let several = tokio::spawn(several.into_future());
    world.pass(secs(1_000)).await;
    assert_eq!(log.lines(), [""; 0]);
    // The control: another call for the same lock is reported.
    let _waits =
        tokio::spawn(lock(&world.runtime(5), "leader").acquire().wait_forever().into_future());
    world.pass(secs(11)).await;
    assert_eq!(reports(&log).len(), 1);
    followers.iter().for_each(JoinHandle::abort);
    several.abort();
    drop(leader);
}

/// One call may be reported although the runtime reports none, or sooner than the others.
#[tokio::test]
async fn a_call_says_when_it_is_reported() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let _held = lock(&world.runtime(1), "orders/42").acquire().await.unwrap();
    for (number, of_runtime) in [(2, Duration::MAX), (3, secs(10))] {
        let locks = world.start(world.builder(number).blocked_after(of_runtime));
        let acquire = lock(&locks, "orders/42").acquire().wait_forever();
        let waiting = tokio::spawn(acquire.blocked_after(secs(1)).into_future());
        let before = reports(&log).len();
        world.pass(millis(8_500)).await;
        assert_eq!(reports(&log).len() - before, 4, "after 1, 2, 4 and 8 seconds");
        waiting.abort();
        let short = lock(&locks, "free").acquire().blocked_after(millis(99)).await;
        assert!(matches!(short, Err(AcquireError::Options { .. })), "{short:?}");
    }
}

#[tokio::test]
async fn the_time_is_a_setting() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let never = world.start(world.builder(1).blocked_after(Duration::MAX));
    let soon = world.start(world.builder(2).blocked_after(secs(1)));
    let held = lock(&world.runtime(3), "orders/42").acquire().wait_forever().await.unwrap();
    let _waits = tokio::spawn(lock(&never, "orders/42").acquire().wait_forever().into_future());
    world.pass(secs(1_000)).await;
    assert_eq!(reports(&log), [""; 0]);
    let _waits = tokio::spawn(lock(&soon, "orders/42").acquire().wait_forever().into_future());
    world.pass(millis(1_100)).await;
    assert_eq!(reports(&log).len(), 1);
    drop(held);
    let builder = world.builder(4).blocked_after(millis(99));
    assert!(builder.on_store(std::sync::Arc::new(world.store.clone())).is_err());
}
