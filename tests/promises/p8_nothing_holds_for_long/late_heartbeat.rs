//! A heartbeat that is executed after the release of its turn leaves no lease that nobody knows of.

use leasehold::{LockRuntime, LockRuntimeBuilder};
use leasehold_testkit::{CommandKind, Fault, Rule, Wrong};

use crate::support::{Waiting, World, config, lock, millis, secs};

/// A heartbeat is on its way when the lock is handed over; it arrives after the release.
async fn holder_after_a_late_heartbeat(
    start: fn(&World, LockRuntimeBuilder) -> LockRuntime,
) -> bool {
    let world = World::new();
    let holds = world.another_line().runtime(1);
    let waits = start(&world, world.builder(2));
    let guard = lock(&holds).acquire().await.unwrap();
    let waiting = Waiting::queued(&world, &waits).await;
    world.store.inject(Rule::new(Fault::LateRequest).on(CommandKind::Heartbeat));
    while world.store.late() == 0 {
        world.pass(millis(1)).await;
    }
    guard.release().await.unwrap();
    waiting.taken(&world).await.release().await.unwrap();
    world.pass(millis(100)).await;
    assert_eq!(world.store.deliver_late().await.len(), 1);
    world.settle().await;
    world.holder(World::NAME).await.is_some()
}

#[tokio::test]
async fn a_heartbeat_that_comes_after_the_release_is_refused() {
    assert!(!holder_after_a_late_heartbeat(World::start).await);
}

/// The control: a runtime that forgets what was not answered leaves a ghost for one ttl.
#[tokio::test]
async fn control_a_forgotten_heartbeat_becomes_a_ghost() {
    let start = |world: &World, builder| world.start_wrong(builder, Wrong::ForgetsUnanswered);
    assert!(holder_after_a_late_heartbeat(start).await);
}

/// A heartbeat that is refused for good ends the wait, and the place is not left to lapse.
#[tokio::test]
async fn a_heartbeat_that_is_refused_takes_its_place_back() {
    let world = World::new();
    let (holds, waits) = (world.another_line().runtime(1), world.runtime(2));
    let _guard = lock(&holds).acquire().await.unwrap();
    let waiting = Waiting::queued(&world, &waits).await;
    world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Heartbeat));
    world.pass(secs(1)).await;
    assert!(waiting.outcome().await.is_err());
    let waiters = world.holder(World::NAME).await.unwrap().waiters;
    assert!(waiters.is_empty(), "{waiters:?}");
}
