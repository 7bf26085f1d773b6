//! A task of a turn that is offered the lock, and that nobody polls.

use std::{task::Poll, time::Duration};

use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::CommandKind;

use crate::support::{Waiting, World, just_before, lock, millis, nanos, poll_once, secs, warm_up};

/// An offer stays open for half the claim window.
const PATIENCE: Duration = Duration::from_millis(1_500);

#[tokio::test]
async fn an_offer_that_nobody_looks_at_passes_on() {
    for same_runtime in [true, false] {
        let world = World::new();
        let (one, two) = (world.runtime(1), world.another_line().runtime(2));
        warm_up(&world, &one).await;
        let guard = lock(&one).acquire().await.unwrap();
        let mut unpolled = Box::pin(lock(&one).acquire().wait_forever());
        assert!(poll_once(unpolled.as_mut()).is_pending());
        let next = Waiting::queued(&world, if same_runtime { &one } else { &two }).await;
        world.pass(millis(1)).await;
        guard.release().await.unwrap();
        world.pass(just_before(PATIENCE)).await;
        assert!(!next.is_over());
        world.pass(nanos(1)).await;
        let guard = next.taken(&world).await;
        // Polled at last, it finds that it was sent away, and queues anew behind everybody.
        assert!(poll_once(unpolled.as_mut()).is_pending());
        let last = Waiting::queued(&world, &one).await;
        assert!(guard.is_held());
        world.pass(millis(1)).await;
        guard.release().await.unwrap();
        world.settle().await;
        let Poll::Ready(guard) = poll_once(unpolled.as_mut()) else { panic!("its turn") };
        guard.unwrap().release().await.unwrap();
        last.taken(&world).await.release().await.unwrap();
        assert!(world.holder(World::NAME).await.is_none());
        // Nothing was renewed that nobody had taken.
        assert_eq!(world.store.sent(CommandKind::Renew), 0);
    }
}

/// A whole crowd that nobody polls costs each other's time, and nobody else's.
#[tokio::test]
async fn a_crowd_that_nobody_polls_delays_others_once() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(&world, &one).await;
    let guard = lock(&one).acquire().await.unwrap();
    let mut crowd = Vec::new();
    for _ in 0..5 {
        crowd.push(Box::pin(lock(&one).acquire().wait_forever()));
        assert!(poll_once(crowd.last_mut().unwrap().as_mut()).is_pending());
    }
    let next = Waiting::queued(&world, &two).await;
    world.pass(millis(1)).await;
    guard.release().await.unwrap();
    world.pass(PATIENCE).await;
    next.taken(&world).await.release().await.unwrap();
    drop(crowd);
    world.settle().await;
    assert!(world.holder(World::NAME).await.is_none());
}

/// Offered the lock by a message, nobody looks: the claim window of the grant is the bound, and
/// half of it is enough.
#[tokio::test]
async fn a_granted_task_that_nobody_polls_delays_by_half_the_window() {
    let world = World::new();
    let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
    warm_up(&world, &one).await;
    let guard = lock(&one).acquire().await.unwrap();
    let mut unpolled = Box::pin(lock(&two).acquire().wait_forever());
    for _ in 0..3 {
        assert!(poll_once(unpolled.as_mut()).is_pending());
        world.settle().await;
    }
    let next = Waiting::queued(&world, &three).await;
    guard.release().await.unwrap();
    assert_eq!(world.holder(World::NAME).await.unwrap().id.runtime(), two.id());
    world.pass(just_before(PATIENCE)).await;
    assert!(!next.is_over());
    world.pass(nanos(1)).await;
    next.taken(&world).await.release().await.unwrap();
    // Polled again in time, it would have had it; now it begins anew, and finds the lock free.
    let Poll::Ready(guard) = poll_once(unpolled.as_mut()) else { panic!("it is free") };
    assert!(guard.unwrap().is_held());
}

/// The offer is taken at the last moment.
#[tokio::test]
async fn an_offer_can_be_taken_until_it_is_stale() {
    let world = World::new();
    let locks = world.runtime(1);
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().await.unwrap();
    let mut slow = Box::pin(lock(&locks).acquire());
    assert!(poll_once(slow.as_mut()).is_pending());
    guard.release().await.unwrap();
    world.pass(just_before(PATIENCE)).await;
    let Poll::Ready(Ok(guard)) = poll_once(slow.as_mut()) else { panic!("still open") };
    world.pass(secs(60)).await;
    assert!(guard.is_held());
}

/// The control: where an offer may be taken at any time, the turn does not end.
#[tokio::test]
async fn control_an_offer_that_is_not_taken_back_keeps_the_turn() {
    let world = World::new();
    let rules = Rules { offer_ends: |at, _| at + secs(60), ..Rules::default() };
    let one = world.start(world.builder(1).seam(rules));
    let two = world.another_line().runtime(2);
    warm_up(&world, &one).await;
    let guard = lock(&one).acquire().await.unwrap();
    let mut unpolled = Box::pin(lock(&one).acquire().wait_forever());
    assert!(poll_once(unpolled.as_mut()).is_pending());
    let next = Waiting::queued(&world, &two).await;
    world.pass(millis(1)).await;
    guard.release().await.unwrap();
    world.pass(secs(3)).await;
    assert!(!next.is_over(), "longer than the claim window");
}
