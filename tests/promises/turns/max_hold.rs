use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{Waiting, World, lock, millis, nanos, poll_once, secs, warm_up};

/// The next task believes as long as the server does, although the last one had little time left.
#[tokio::test]
async fn a_max_hold_of_one_task_is_not_the_next_ones() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)));
    warm_up(&world, &locks).await;
    let first = lock(&locks).acquire().max_hold(millis(8)).await.unwrap();
    let next = Waiting::queued(&world, &locks).await;
    world.pass(millis(7)).await;
    first.release().await.unwrap();
    let next = next.taken(&world).await;
    assert!(next.remaining() > secs(29), "only {:?} are left of 30 s", next.remaining());
    let record = world.holder(World::NAME).await.expect("the turn goes on");
    assert!(record.remaining >= next.remaining(), "believed for longer than {record:?}");
    // No renewal helps it over the end of that `max_hold`.
    world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Renew));
    world.pass(millis(2)).await;
    assert!(next.is_held(), "{:?}", next.lease().state());
}

/// A task that takes its offer after the end of the last one's `max_hold` has the lock at once.
#[tokio::test]
async fn an_offer_outlives_the_max_hold_of_the_last_task() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)));
    warm_up(&world, &locks).await;
    let first = lock(&locks).acquire().max_hold(millis(8)).await.unwrap();
    let mut next = Box::pin(lock(&locks).acquire().wait(secs(60)));
    assert!(poll_once(next.as_mut()).is_pending());
    world.pass(millis(7) + nanos(900_000)).await;
    first.release().await.unwrap();
    // Time goes on before the next task is polled.
    world.clock().advance(millis(1));
    let next = tokio::spawn(next);
    world.pass(secs(1)).await;
    assert!(next.is_finished(), "the runtime waits for a lease of its own");
    assert!(next.await.unwrap().unwrap().is_held(), "what it was given had ended before");
}
