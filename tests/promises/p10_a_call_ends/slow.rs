//! A round trip that takes longer than the claim window.

use std::time::Duration;

use leasehold::{LockRuntime, error::AcquireError};
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::CommandKind;

use crate::support::{Waiting, World, lock, millis, secs};

/// A runtime whose claim window is shorter than the way to the server and back.
fn far_away(world: &World, window: Duration, round_trip: Duration) -> LockRuntime {
    slow_down(world, round_trip);
    world.start(world.builder(1).claim_window(window))
}

fn slow_down(world: &World, round_trip: Duration) {
    for kind in [CommandKind::Acquire, CommandKind::Heartbeat, CommandKind::Withdraw] {
        world.slow_down(kind, round_trip);
    }
}

#[tokio::test]
async fn a_free_lock_is_got_however_short_the_claim_window() {
    for (window, round_trip) in [(50, 60), (50, 150), (100, 400), (300, 900), (1_000, 1_500)] {
        let world = World::new();
        let locks = far_away(&world, millis(window), millis(round_trip));
        let waiting = Waiting::on(lock(&locks).acquire().wait(secs(5)));
        let (guard, after) = waiting.taken_within(&world, secs(6)).await;
        assert!(after <= millis(round_trip + 1), "{window} ms: {after:?}");
        world.pass(secs(30)).await;
        assert!(guard.is_held(), "what was got is kept");
    }
}

#[tokio::test]
async fn a_try_gets_a_free_lock_however_short_the_claim_window() {
    let world = World::new();
    let locks = far_away(&world, millis(50), millis(400));
    let waiting = Waiting::on(lock(&locks).acquire().wait(Duration::ZERO));
    let (guard, _) = waiting.taken_within(&world, secs(1)).await;
    assert!(guard.is_held());
}

/// Too far away to be answered at all: the wait ends, with the reason.
#[tokio::test]
async fn a_wait_ends_although_no_answer_comes_in_time() {
    for wait in [100, 1_000, 7_000] {
        let world = World::new();
        let locks = far_away(&world, millis(50), secs(60));
        let waiting = Waiting::on(lock(&locks).acquire().wait(millis(wait)));
        world.pass(millis(wait + 250)).await;
        assert!(waiting.is_over(), "{wait} ms");
        let outcome = waiting.outcome().await;
        assert!(matches!(outcome, Err(AcquireError::Unavailable(_))), "{outcome:?}");
    }
}

/// The control: a try that counts as given up after a window, although it is polled, never gets the
/// lock.
#[tokio::test]
async fn control_a_try_that_counts_as_given_up_after_a_window_never_gets_the_lock() {
    let world = World::new();
    slow_down(&world, millis(400));
    let rules = Rules { attended_from: |sent_at, _| sent_at, ..Rules::default() };
    let locks = world.start(world.builder(1).claim_window(millis(50)).seam(rules));
    let waiting = Waiting::on(lock(&locks).acquire().wait(Duration::ZERO));
    world.pass(secs(1)).await;
    assert!(!waiting.is_over() || waiting.outcome().await.is_err());
}
