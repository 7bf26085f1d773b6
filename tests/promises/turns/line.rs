use leasehold::error::AcquireError;
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

/// A place that was asked for with a short ttl is kept at the pace of those who are left.
#[tokio::test]
async fn a_place_is_not_kept_at_the_pace_of_a_task_that_left() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)));
    let other = world.another_line().runtime(2);
    let _held = lock(&other).acquire().ttl(secs(60)).await.unwrap();
    let short = Waiting::on(lock(&locks).acquire().ttl(millis(100)).wait_forever());
    world.settle().await;
    let _long = Waiting::on(lock(&locks).acquire().wait_forever());
    world.settle().await;
    short.cancel().await;
    world.store.clear_log();
    world.pass(secs(6)).await;
    let sent = world.store.sent(CommandKind::Heartbeat);
    assert!((1..=12).contains(&sent), "{sent} heartbeats in 6 s");
}

/// A grant whose answer comes after the claim window is not missed for ever.
#[tokio::test]
async fn answers_slower_than_the_claim_window_end_in_a_lease() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)).claim_window(millis(50)));
    let waiting = Waiting::on(lock(&locks).acquire().wait(secs(20)));
    for _ in 0..100 {
        if waiting.is_over() {
            break;
        }
        answer_after_60_millis(&world).await;
    }
    assert!(waiting.is_over(), "100 answers led to nothing");
    let guard = waiting.outcome().await.expect("the answers are slow, and grants all the same");
    let record = world.holder(World::NAME).await.expect("the lease is there");
    assert_eq!(record.fence, guard.fence());
}

/// Keeps back the answer to whatever is asked within 60 ms.
async fn answer_after_60_millis(world: &World) {
    let gate = Gate::new();
    world.store.heal();
    for kind in [CommandKind::Acquire, CommandKind::Heartbeat] {
        world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(kind));
    }
    world.pass(millis(60)).await;
    gate.open();
    world.settle().await;
}

/// A task whose wait is over leaves the line before it asks who holds the lock.
#[tokio::test]
async fn a_task_whose_wait_is_over_keeps_no_offer_from_the_next() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)));
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().await.unwrap();
    let short = Waiting::on(lock(&locks).acquire().wait(millis(5)));
    world.settle().await;
    let next = Waiting::queued(&world, &locks).await;
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Inspect));
    world.pass(millis(6)).await;
    assert_eq!(gate.arrived(), 1, "the first one looks who holds the lock");
    guard.release().await.unwrap();
    let _next = next.taken_within(&world, millis(10)).await;
    assert!(!short.is_over(), "it is still looking");
    gate.open();
    world.settle().await;
    let error = short.outcome().await.expect_err("its wait is over");
    assert!(matches!(error, AcquireError::Timeout(_)), "{error}");
}
