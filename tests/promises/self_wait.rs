//! A task that waits for its own process is told so: one warning after a second, and a timeout that
//! says how it came about. Tasks that contend for a lock in the usual way are not suspected.

use std::time::Duration;

use leasehold::{
    Acquire,
    error::{AcquireError, SelfWait, WaitTimeout},
};
use leasehold_testkit::Log;

use crate::support::{World, just_before, lock, millis, nanos, secs};

const NAME: &str = World::NAME;
const WAIT: Duration = Duration::from_secs(5);
const SUSPECTS: &str = "waiting for its own process";

/// How a wait of 5 s for a lock that never gets free ends.
async fn in_vain(world: &World, acquire: Acquire) -> WaitTimeout {
    let waits = acquire.wait(WAIT);
    let (told, ()) = tokio::join!(biased; waits, world.pass(WAIT + millis(250)));
    let Err(AcquireError::Timeout(timeout)) = told else { panic!("{told:?}") };
    *timeout
}

fn assert_says(timeout: &WaitTimeout, self_wait: SelfWait, words: &[&str]) {
    assert_eq!(timeout.self_wait, Some(self_wait), "{timeout}");
    let text = timeout.to_string();
    for word in [NAME, "this very runtime"].iter().chain(words) {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[tokio::test]
async fn a_nested_acquire_without_owner() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let timeout = in_vain(&world, lock(&locks).acquire()).await;
    let words = ["nested acquire has no owner", "guard.reenter()", ".owner(&owner)"];
    assert_says(&timeout, SelfWait::WithoutOwner, &words);
    let is_warning = |line: &String| line.contains(SUSPECTS);
    let warned: Vec<_> = log.lines().into_iter().filter(is_warning).collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    let (lease, fence) = (format!("lease={}", guard.id()), format!("fence={}", guard.fence()));
    for word in ["WARN", &format!("lock={NAME}"), &lease, &fence, "held_for=1s", words[0]] {
        assert!(warned[0].contains(word), "{word}: {}", warned[0]);
    }
}

#[tokio::test]
async fn the_warning_comes_after_a_second() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    let task = tokio::spawn(async move {
        let guard = lock(&locks).acquire().await.unwrap();
        let nested = lock(&locks).acquire().await;
        (guard, nested)
    });
    world.pass(just_before(secs(1))).await;
    assert_eq!(log.count(SUSPECTS), 0);
    world.pass(nanos(1)).await;
    assert_eq!(log.count(SUSPECTS), 1);
    task.abort();
}

#[tokio::test]
async fn a_nested_acquire_with_another_owner() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    let [one, two] = [locks.owner(), locks.owner()];
    let _guard = lock(&locks).acquire().owner(&one).await.unwrap();
    let timeout = in_vain(&world, lock(&locks).acquire().owner(&two)).await;
    assert_says(&timeout, SelfWait::OtherOwner, &["nested acquire has another owner"]);
    assert_eq!(log.count(SUSPECTS), 1);
    // The same with a scope of another owner.
    let timeout = two.scope(in_vain(&world, lock(&locks).acquire())).await;
    assert_eq!(timeout.self_wait, Some(SelfWait::OtherOwner));
    // The control: the same owner enters.
    let inner = one.scope(lock(&locks).acquire()).await.unwrap();
    inner.release().await.unwrap();
}

/// A task-local scope does not reach a task that is spawned in it.
#[tokio::test]
async fn a_spawned_task_outside_of_the_scope() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    let owner = locks.owner();
    let outer = async {
        let guard = lock(&locks).acquire().await.unwrap();
        let (line, spawned) = (world.clone(), lock(&locks).acquire());
        let timeout = tokio::spawn(async move { in_vain(&line, spawned).await }).await.unwrap();
        (guard, timeout)
    };
    let (guard, timeout) = owner.scope(outer).await;
    let words = ["does not inherit the scope", "owner.scope(future)", ".owner(&owner)"];
    assert_says(&timeout, SelfWait::OutsideScope, &words);
    assert_eq!(log.count(SUSPECTS), 1);
    // The control: as it advises, the spawned task enters.
    let (within, lock) = (owner.clone(), lock(&locks));
    let spawned = tokio::spawn(async move { within.scope(lock.acquire()).await });
    assert_eq!(spawned.await.unwrap().unwrap().fence(), guard.fence());
}

/// Tasks that contend for a lock, each for itself: no warning, and no suspicion in a timeout.
#[tokio::test]
async fn tasks_that_contend_are_not_suspected() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    for scoped in [false, true] {
        let hold = |time: Duration| {
            let (world, locks) = (world.clone(), locks.clone());
            let owner = locks.owner();
            tokio::spawn(async move {
                let work = async {
                    let guard = lock(&locks).acquire().await?;
                    world.pass_quietly(time).await;
                    guard.release().await.unwrap();
                    Ok::<_, AcquireError>(())
                };
                if scoped { owner.scope(work).await } else { work.await }
            })
        };
        let tasks = [secs(3), secs(3), secs(29)].map(hold);
        world.settle().await;
        let last = hold(secs(1));
        world.pass(secs(31)).await;
        let told = last.await.unwrap();
        let Err(AcquireError::Timeout(timeout)) = told else { panic!("{told:?}") };
        assert_eq!(timeout.self_wait, None, "{timeout}");
        world.pass(secs(10)).await;
        for task in tasks {
            task.await.unwrap().unwrap();
        }
    }
    assert_eq!(log.count(SUSPECTS), 0);
}

/// Branches of one task that take turns: each waits for more than a second, but for no single
/// lease.
#[tokio::test]
async fn branches_of_one_task_that_take_turns_are_not_suspected() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    let branch = async || {
        let guard = lock(&locks).acquire().await.unwrap();
        world.pass_quietly(millis(900)).await;
        guard.release().await.unwrap();
    };
    tokio::join!(biased; branch(), branch(), branch(), branch(), world.pass(secs(5)));
    assert_eq!(log.count(SUSPECTS), 0);
}

#[tokio::test]
async fn a_lock_is_warned_of_once_a_minute() {
    let (log, _collecting) = Log::of_this_thread();
    let world = World::new();
    let locks = world.runtime(1);
    let _guard = lock(&locks).acquire().await.unwrap();
    for _ in 0..5 {
        let _ = in_vain(&world, lock(&locks).acquire()).await;
    }
    assert_eq!(log.count(SUSPECTS), 1);
    world.pass(secs(60)).await;
    let _ = in_vain(&world, lock(&locks).acquire()).await;
    assert_eq!(log.count(SUSPECTS), 2);
}
