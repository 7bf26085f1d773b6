//! A lease that came out of the queue has its ttl soon: the first renewal goes out within 100 ms,
//! and none if the hold is over before.

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

/// Two processes, and a lease of the first that came by a message. Its ttl is 10 s.
async fn handed_over(world: &World) -> (LockRuntime, LockRuntime, Guard) {
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(world, &two).await;
    let before = lock(&two).acquire().await.unwrap();
    let waiting = Waiting::queued(world, &one).await;
    // Belief counts from the heartbeat before.
    world.pass(millis(500)).await;
    before.release().await.unwrap();
    let guard = waiting.taken(world).await;
    assert!(guard.remaining() <= secs(3), "it lives for the claim window");
    (one, two, guard)
}

#[tokio::test]
async fn a_lease_that_came_by_a_message_survives_a_silence_that_begins_soon() {
    let world = World::new();
    let (_one, _two, guard) = handed_over(&world).await;
    world.pass(millis(100)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), 1);
    assert!(guard.remaining() > secs(9), "{:?}", guard.remaining());
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Renew).always());
    world.pass(secs(9)).await;
    assert!(guard.is_held());
}

#[tokio::test]
async fn a_short_hold_sends_no_renewal() {
    let world = World::new();
    let (_one, _two, guard) = handed_over(&world).await;
    world.pass(millis(70)).await;
    guard.release().await.unwrap();
    world.pass(secs(1)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), 0);
}

#[tokio::test]
async fn a_lease_that_has_its_ttl_is_not_renewed_early() {
    let world = World::new();
    let locks = world.runtime(1);
    warm_up(&world, &locks).await;
    let first = lock(&locks).acquire().await.unwrap();
    let next = Waiting::queued(&world, &locks).await;
    world.pass(millis(5)).await;
    first.release().await.unwrap();
    // Of the same turn, which lives for its ttl.
    let guard = next.taken(&world).await;
    world.pass(millis(150)).await;
    assert!(guard.is_held());
    assert_eq!(world.store.sent(CommandKind::Renew), 0);
}
