use std::{num::NonZeroU32, time::Duration};

use leasehold::{
    ForceReleased, LossReason, Released,
    error::{LeaseLost, ReleaseError},
};
use leasehold_testkit::{Fault, Rule};

use crate::support::{World, just_before, lock, nanos, on_every_store, secs};

const NAME: &str = World::NAME;

/// What is left of the minimum of 60 s at the server; `None` when the lock is free.
async fn kept_for(world: &World) -> Option<Duration> {
    let record = world.holder(NAME).await?;
    assert!(record.kept, "{record:?}");
    Some(record.remaining)
}

#[tokio::test]
async fn a_dropped_guard_keeps_the_lock_closed_too() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    let lease = guard.lease();
    world.pass(secs(2)).await;
    drop(guard);
    assert!(!lease.is_held(), "in memory it is over at once");
    world.settle().await;
    assert_eq!(kept_for(&world).await, Some(secs(58)));
    world.pass(secs(58)).await;
    assert!(lock(&locks).try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_release_that_is_cancelled_keeps_it_closed_too() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    drop(guard.release());
    world.settle().await;
    assert_eq!(kept_for(&world).await, Some(secs(60)));
}

#[tokio::test]
async fn the_end_of_max_hold_keeps_it_closed_too() {
    let world = World::new();
    let locks = world.runtime(1);
    let acquire = lock(&locks).acquire().min_hold(secs(60)).max_hold(secs(4));
    let guard = acquire.await.unwrap();
    world.pass(secs(5)).await;
    assert!(!guard.is_held());
    assert_eq!(kept_for(&world).await, Some(secs(55)));
    // Its holder comes late: that opens nothing.
    let late = guard.release().await;
    assert!(
        matches!(late, Err(ReleaseError::Lost(LeaseLost { reason: LossReason::MaxHold, .. }))),
        "{late:?}"
    );
    world.pass(secs(5)).await;
    assert_eq!(kept_for(&world).await, Some(secs(50)));
}

#[tokio::test]
async fn a_shutdown_keeps_it_closed_too() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    world.pass(secs(10)).await;
    let report = locks.shutdown(secs(5)).await;
    assert_eq!((report.held, report.unreleased.len()), (1, 0));
    assert_eq!(kept_for(&world).await, Some(secs(50)));
    drop(guard);
    world.pass(secs(1)).await;
    assert_eq!(kept_for(&world).await, Some(secs(49)));
}

on_every_store! {
    /// The last release counts, and a re-entry may ask for more.
    async fn nested_holds_share_the_latest_minimum(world: World) {
        let locks = world.runtime(1);
        let owner = locks.owner();
        let outer = lock(&locks).acquire().owner(&owner).min_hold(secs(600)).await.unwrap();
        let asks_more = lock(&locks).acquire().owner(&owner).min_hold(secs(3600));
        let inner = asks_more.await.unwrap();
        let less = lock(&locks).acquire().owner(&owner).min_hold(secs(1)).await.unwrap();
        assert_eq!(outer.fence(), inner.fence());
        let two = NonZeroU32::new(2).unwrap();
        assert_eq!(outer.release().await.unwrap(), Released::StillHeld(two));
        less.release().await.unwrap();
        assert!(inner.is_held(), "a minimum closes nothing before the last release");
        let Released::Kept { remaining } = inner.release().await.unwrap() else {
            panic!("an hour is not over");
        };
        assert!(remaining > secs(3000), "{remaining:?}");
    }

    /// An operator opens it at once.
    async fn a_forced_release_opens_a_kept_lock(world: World) {
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().min_hold(secs(3600)).await.unwrap();
        guard.release().await.unwrap();
        let forced = locks.force_release(NAME).await.unwrap();
        assert!(matches!(forced, ForceReleased::Ended { .. }), "{forced:?}");
        assert!(lock(&locks).try_acquire().await.unwrap().is_some());
    }

    /// A lease that an operator ended is gone, and its minimum with it.
    async fn a_lost_lease_keeps_nothing_closed_that_is_somebody_elses(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let guard = lock(&locks).acquire().min_hold(secs(3600)).await.unwrap();
        locks.force_release(NAME).await.unwrap();
        let next = lock(&other).acquire().await.unwrap();
        let late = guard.release().await;
        assert!(matches!(late, Err(ReleaseError::Lost(_))), "{late:?}");
        assert!(next.is_held());
        let record = world.holder(NAME).await.unwrap();
        assert!(record.id == next.id() && !record.kept);
    }
}

/// A runtime that is gone without a word frees the lock with its ttl, whatever the minimum.
#[tokio::test]
async fn a_crash_frees_with_the_ttl() {
    let world = World::new();
    let (gone, other) = (world.another_line(), world.runtime(2));
    let locks = gone.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(3600)).await.unwrap();
    gone.store.inject(Rule::new(Fault::LoseRequest).always());
    world.pass(just_before(secs(10))).await;
    assert!(lock(&other).try_acquire().await.unwrap().is_none());
    world.pass(nanos(1)).await;
    assert!(lock(&other).try_acquire().await.unwrap().is_some());
    drop(guard);
}
