//! A subscription returns while a command of the waiter is under way: it asks again all the same.

use leasehold_testkit::{
    CommandKind, Fault, Gate, Rule,
    faulty::{PushFault, PushRule},
};

use super::virtual_support::{Waiting, World, lock, millis, secs, warm_up};

/// The place is granted, its message is lost, and the answer "not yet" is older than that.
async fn asks_after_a_gap(world: World, kind: CommandKind) {
    let holds = world.another_line().runtime(1);
    let waits = world.runtime(2);
    let guard = lock(&holds).acquire().await.unwrap();
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(kind));
    let waiting = Waiting::queued(&world, &waits).await;
    while gate.arrived() == 0 {
        world.pass(millis(1)).await;
    }
    world.store.inject_push(PushRule::new(PushFault::Lose));
    guard.release().await.unwrap();
    world.store.reconnect();
    world.settle().await;
    gate.open();
    let (_guard, waited) = waiting.taken_within(&world, secs(2)).await;
    assert!(waited <= millis(51), "{kind:?}: {waited:?}");
}

#[tokio::test]
async fn whoever_has_a_heartbeat_under_way_asks_again() {
    asks_after_a_gap(World::new(), CommandKind::Heartbeat).await;
}

/// As in the first milliseconds of a process, before it can hear the server.
#[tokio::test]
async fn whoever_asks_for_the_first_time_asks_again() {
    asks_after_a_gap(World::new(), CommandKind::Acquire).await;
}

/// A release queues its process anew; the lock comes back to it before the release is answered.
#[tokio::test]
async fn whoever_queues_anew_asks_again() {
    let world = World::new();
    let (holds, other) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(&world, &holds).await;
    let guard = lock(&holds).acquire().await.unwrap();
    let theirs = Waiting::queued(&world, &other).await;
    let again = Waiting::queued(&world, &holds).await;
    world.pass(millis(10)).await;
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Release));
    guard.release().await.unwrap();
    world.store.inject_push(PushRule::new(PushFault::Lose).to(holds.id()));
    theirs.taken(&world).await.release().await.unwrap();
    world.store.reconnect();
    world.settle().await;
    gate.open();
    let (_guard, waited) = again.taken_within(&world, secs(2)).await;
    assert!(waited <= millis(51), "{waited:?}");
}
