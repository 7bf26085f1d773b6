use leasehold::Released;
use leasehold_testkit::CommandKind;

use crate::support::{Waiting, World, just_before, lock, millis, secs, warm_up};

/// The one that waits in another process has the lock when the time is over, and not before.
#[tokio::test]
async fn a_process_that_waits_gets_it_when_the_rest_is_over() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().min_hold(secs(20)).await.unwrap();
    let waiting = Waiting::queued(&world, &other).await;
    world.pass(secs(1)).await;
    let released = guard.release().await.unwrap();
    assert_eq!(released, Released::Kept { remaining: secs(19) });
    world.pass(just_before(secs(19))).await;
    assert!(!waiting.is_over(), "it is kept closed");
    let (next, after) = waiting.taken_within(&world, millis(50)).await;
    assert!(next.is_held(), "after {after:?}");
}

/// Keeping ends a turn: a task of the same process waits like everybody else.
#[tokio::test]
async fn a_task_of_the_same_process_gets_it_when_the_rest_is_over() {
    let world = World::new();
    let locks = world.runtime(1);
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().min_hold(secs(20)).await.unwrap();
    let fence = guard.fence();
    let waiting = Waiting::queued(&world, &locks).await;
    let release = tokio::spawn(guard.release());
    world.settle().await;
    let released = release.await.unwrap().unwrap();
    assert_eq!(released, Released::Kept { remaining: secs(20) });
    world.pass(just_before(secs(20))).await;
    assert!(!waiting.is_over(), "it is kept closed");
    let (next, _) = waiting.taken_within(&world, millis(50)).await;
    assert!(next.fence() > fence);
}

/// A lease of a turn whose minimum is over goes on in memory, as ever.
#[tokio::test]
async fn a_minimum_that_is_over_does_not_end_a_turn() {
    let world = World::new();
    let locks = world.runtime(1);
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().min_hold(millis(1)).await.unwrap();
    let waiting = Waiting::queued(&world, &locks).await;
    world.pass(millis(2)).await;
    let asked = world.store.sent(CommandKind::Release);
    assert_eq!(guard.release().await.unwrap(), Released::Ended);
    let next = waiting.taken(&world).await;
    assert_eq!(world.store.sent(CommandKind::Release), asked);
    assert!(next.is_held());
}

/// Those who waited before the lock was kept stay before those who came after.
#[tokio::test]
async fn the_queue_keeps_its_order() {
    let world = World::new();
    let locks = [1, 2, 3].map(|seed| world.runtime(seed));
    warm_up(&world, &locks[0]).await;
    let guard = lock(&locks[0]).acquire().min_hold(secs(8)).await.unwrap();
    let first = Waiting::queued(&world, &locks[1]).await;
    guard.release().await.unwrap();
    let second = Waiting::queued(&world, &locks[2]).await;
    world.pass(secs(8)).await;
    let (guard, _) = first.taken_within(&world, millis(50)).await;
    assert!(!second.is_over());
    guard.release().await.unwrap();
    let (guard, _) = second.taken_within(&world, millis(50)).await;
    guard.release().await.unwrap();
}
