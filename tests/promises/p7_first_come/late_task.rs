//! A release without a next place gets no answer: tasks that come after it was sent have a place
//! within a heartbeat.

use std::time::Duration;

use leasehold::{Guard, LockRuntime, Released};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};
use tokio::task::JoinHandle;

use crate::support::{Waiting, World, lock, millis, secs};

/// How long after a command about a place the next one is sent, by default.
const HEARTBEAT: Duration = millis(750);

/// Gives a lease back: awaited by a task, or by a drop.
fn give_back(guard: Guard, awaited: bool) -> Option<JoinHandle<Released>> {
    if awaited {
        return Some(tokio::spawn(async move { guard.release().await.unwrap() }));
    }
    drop(guard);
    None
}

/// A process whose release meets a fault.
async fn released_into(fault: Fault) -> (World, LockRuntime, Guard) {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    world.store.inject(Rule::new(fault).on(CommandKind::Release));
    (world, locks, guard)
}

#[tokio::test]
async fn a_task_that_comes_during_the_release_gets_the_lock_within_a_heartbeat() {
    for fault in [Fault::LoseReply, Fault::LoseRequest] {
        for awaited in [true, false] {
            for comes_after in [millis(30), millis(749), millis(750), millis(1_500)] {
                let (world, locks, guard) = released_into(fault.clone()).await;
                let since = world.now();
                let released = give_back(guard, awaited);
                world.settle().await;
                world.pass(comes_after).await;
                let waiting = Waiting::on(lock(&locks).acquire());
                let (_guard, _) = waiting.taken_within(&world, secs(2)).await;
                let after = world.now().saturating_since(since);
                assert_eq!(after, comes_after.max(HEARTBEAT), "{fault:?}, {awaited}");
                world.pass(secs(3)).await;
                if let Some(released) = released {
                    assert_eq!(released.await.unwrap(), Released::Ended);
                }
            }
        }
    }
}

/// No command of the process is answered: the place is there all the same.
#[tokio::test]
async fn a_task_that_came_first_is_served_first_although_nothing_is_answered() {
    for awaited in [true, false] {
        let (world, locks, guard) = released_into(Fault::LoseReply).await;
        world.store.inject(Rule::new(Fault::LoseReply).always());
        let others = world.another_line().runtime(2);
        let _released = give_back(guard, awaited);
        world.settle().await;
        world.pass(millis(30)).await;
        let first = Waiting::on(lock(&locks).acquire());
        world.pass(HEARTBEAT).await;
        let second = Waiting::queued(&world, &others).await;
        world.store.heal();
        let (guard, _) = first.taken_within(&world, HEARTBEAT).await;
        assert!(!second.is_over());
        guard.release().await.unwrap();
        assert!(second.taken(&world).await.is_held());
    }
}

/// The process that waited before the release is served first, and the task behind it.
#[tokio::test]
async fn a_task_that_comes_during_the_release_queues_behind_the_others() {
    for fault in [Fault::LoseReply, Fault::LoseRequest] {
        let (world, locks, guard) = released_into(fault).await;
        let before = Waiting::queued(&world, &world.another_line().runtime(2)).await;
        let _released = give_back(guard, true);
        world.settle().await;
        world.pass(millis(30)).await;
        let late = Waiting::on(lock(&locks).acquire());
        let (theirs, _) = before.taken_within(&world, HEARTBEAT).await;
        world.pass(secs(1)).await;
        let last = Waiting::queued(&world, &world.another_line().runtime(3)).await;
        assert!(!late.is_over());
        theirs.release().await.unwrap();
        late.taken(&world).await.release().await.unwrap();
        assert!(last.taken(&world).await.is_held());
    }
}

/// The release is only slow: its turn was ended meanwhile, and that is no loss.
#[tokio::test]
async fn a_release_that_comes_after_the_withdrawal_is_a_release() {
    let gate = Gate::new();
    let (world, locks, guard) = released_into(Fault::Delay(gate.clone())).await;
    let released = give_back(guard, true).unwrap();
    world.settle().await;
    let waiting = Waiting::on(lock(&locks).acquire());
    let (_guard, after) = waiting.taken_within(&world, secs(2)).await;
    assert_eq!(after, HEARTBEAT);
    gate.open();
    world.settle().await;
    assert!(released.is_finished());
    assert_eq!(released.await.unwrap(), Released::Ended);
}

/// A lock that is to stay closed does not open for the task.
#[tokio::test]
async fn a_minimum_goes_before_the_place() {
    for fault in [Fault::LoseReply, Fault::LoseRequest] {
        let world = World::new();
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().min_hold(millis(1_500)).await.unwrap();
        let since = world.now();
        world.store.inject(Rule::new(fault).on(CommandKind::Release).times(2));
        let _released = give_back(guard, false);
        world.settle().await;
        let waiting = Waiting::on(lock(&locks).acquire());
        let (_guard, _) = waiting.taken_within(&world, secs(3)).await;
        assert_eq!(world.now().saturating_since(since), millis(1_500));
    }
}
