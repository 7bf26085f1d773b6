//! An executor that polls a task late, and seldom.

use std::{future::poll_fn, pin::Pin, task::Poll, time::Duration};

use leasehold::{Guard, error::AcquireError, time::Clock};
use leasehold_testkit::CommandKind;
use tokio::task::consume_budget;

use crate::support::{World, lock, millis, poll_once, secs, warm_up};

/// Every command needs more than one poll.
fn answers_take_a_while(world: &World) {
    for kind in [CommandKind::Acquire, CommandKind::Heartbeat, CommandKind::Withdraw] {
        world.slow_down(kind, millis(1));
    }
}

/// Polls an acquire in such steps until it ends; when that was, counted from the first poll.
async fn polled_every(
    world: &World,
    step: Duration,
    acquire: leasehold::Acquire,
) -> (Result<Guard, AcquireError>, Duration) {
    let mut acquire = Box::pin(acquire);
    let since = world.now();
    loop {
        if let Poll::Ready(outcome) = poll_once(acquire.as_mut()) {
            return (outcome, world.now().saturating_since(since));
        }
        assert!(world.now().saturating_since(since) < secs(120), "it never ends");
        world.pass(step).await;
    }
}

/// A task that has used up its budget of tokio in this poll, and then polls a wait: it takes what it is offered. The
/// control: a `select!` of tokio polls nothing then.
#[tokio::test]
async fn a_wait_is_polled_also_without_a_budget() {
    let world = World::new();
    let locks = world.runtime(1);
    let spent = |mut work: Pin<Box<dyn Future<Output = bool> + Send>>| {
        poll_fn(move |cx| {
            while Box::pin(consume_budget()).as_mut().poll(cx).is_ready() {}
            Poll::Ready(work.as_mut().poll(cx))
        })
    };
    let acquire = Box::pin(lock(&locks).acquire());
    let taken = spent(Box::pin(async { acquire.await.is_ok() })).await;
    assert_eq!(taken, Poll::Ready(true), "it is free");
    let control = spent(Box::pin(async {
        tokio::select! { () = std::future::ready(()) => true }
    }));
    assert_eq!(control.await, Poll::Pending);
}

/// A lock that nobody holds: either it is got or the wait ends, at the first poll after its time.
#[tokio::test]
async fn a_wait_for_a_free_lock_ends_at_the_first_poll_after_its_time() {
    for step in [millis(900), millis(1_600), secs(3), secs(4), secs(7)] {
        for window in [millis(50), secs(1), secs(3)] {
            let world = World::new();
            answers_take_a_while(&world);
            let locks = world.start(world.builder(1).claim_window(window));
            let acquire = lock(&locks).acquire().wait(secs(5));
            let (_, after) = polled_every(&world, step, acquire).await;
            // The look at the holder is a poll more.
            assert!(after <= secs(5) + step * 2, "{step:?}, {window:?}: {after:?}");
        }
    }
}

/// A lock that passes between two others all the time: every offer is missed.
#[tokio::test]
async fn a_wait_for_a_busy_lock_ends_at_the_first_poll_after_its_time() {
    for step in [secs(2), secs(4), secs(6)] {
        let world = World::new();
        answers_take_a_while(&world);
        let (busy, starved) = (world.another_line().runtime(1), world.runtime(2));
        warm_up(&world, &busy).await;
        let (lock_too, clock) = (lock(&busy), world.clock().clone());
        let crowd = tokio::spawn(async move {
            loop {
                let guard = lock_too.acquire().wait_forever().await.unwrap();
                clock.sleep_until(clock.now() + millis(300)).await;
                guard.release().await.unwrap();
            }
        });
        world.settle().await;
        let acquire = lock(&starved).acquire().wait(secs(5));
        let (_, after) = polled_every(&world, step, acquire).await;
        assert!(after <= secs(5) + step * 2, "{step:?}: {after:?}");
        crowd.abort();
    }
}

/// Time counts from the first poll, not from the call.
#[tokio::test]
async fn a_wait_begins_with_its_first_poll() {
    let world = World::new();
    let (holds, waits) = (world.another_line().runtime(1), world.runtime(2));
    let _guard = lock(&holds).acquire().await.unwrap();
    let acquire = Box::pin(lock(&waits).acquire().wait(secs(2)));
    world.pass(secs(10)).await;
    let waiting = tokio::spawn(acquire);
    world.pass(millis(1_999)).await;
    assert!(!waiting.is_finished());
    world.pass(millis(1)).await;
    assert!(waiting.is_finished());
}
