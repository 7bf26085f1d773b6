//! A server that says nothing, or only that something is wrong.

use std::time::Duration;

use leasehold::{Acquire, Owner, error::AcquireError};
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{World, definite, lock, millis, secs};

/// How long a timeout may look for the holder.
const LOOK: Duration = millis(250);

/// The error of a wait, and when it came.
async fn ends(world: &World, acquire: Acquire, wait: u64) -> (AcquireError, Duration) {
    // The wait ends it, and not the patience with an outage.
    let acquire = acquire.wait(millis(wait)).outage_patience(secs(100));
    let since = world.now();
    let waiting = crate::support::Waiting::on(acquire);
    world.pass(millis(wait - 1)).await;
    while !waiting.is_over() {
        assert!(world.now().saturating_since(since) < secs(60), "it never ends");
        world.pass(millis(1)).await;
    }
    let after = world.now().saturating_since(since);
    (waiting.outcome().await.expect_err("nobody grants it"), after)
}

/// Nothing is answered: the requests are lost, or the replies.
#[tokio::test]
async fn a_wait_ends_when_nothing_is_answered() {
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Hang { executed: true }] {
        for wait in [1, 50, 700, 1_000, 1_999, 2_001, 5_000, 31_000] {
            let world = World::new();
            let locks = world.runtime(1);
            world.store.inject(Rule::new(fault.clone()).always());
            let (error, after) = ends(&world, lock(&locks).acquire(), wait).await;
            assert!(after >= millis(wait) && after <= millis(wait) + LOOK, "{wait} ms: {after:?}");
            let AcquireError::Unavailable(outage) = error else { panic!("{error:?}") };
            assert!(outage.waited >= millis(wait), "{outage:?}");
        }
    }
}

/// The lock is taken, and it cannot be found out by whom.
#[tokio::test]
async fn a_wait_for_a_taken_lock_ends_when_the_look_at_the_holder_is_not_answered() {
    for wait in [1, 50, 700, 5_000] {
        let world = World::new();
        let (holds, waits) = (world.another_line().runtime(1), world.runtime(2));
        let _guard = lock(&holds).acquire().await.unwrap();
        world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Inspect).always());
        let (error, after) = ends(&world, lock(&waits).acquire(), wait).await;
        assert!(after >= millis(wait) && after <= millis(wait) + LOOK, "{wait} ms: {after:?}");
        let AcquireError::Timeout(timeout) = error else { panic!("{error:?}") };
        assert!(timeout.holder.is_none(), "{timeout:?}");
    }
}

/// The first error is not forgotten when the task has to begin anew.
#[tokio::test]
async fn a_wait_keeps_its_last_error() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Fail(definite())).always());
    let (error, after) = ends(&world, lock(&locks).acquire(), 3_000).await;
    assert!(after >= secs(3) && after <= secs(3) + LOOK, "{after:?}");
    let AcquireError::Unavailable(outage) = error else { panic!("{error:?}") };
    assert_eq!(outage.error.kind(), definite().kind());
}

/// An owner enters its lease while nothing is answered: the lease stands, and the wait ends.
#[tokio::test]
async fn a_reentry_ends_when_nothing_is_answered() {
    let world = World::new();
    let locks = world.runtime(1);
    let owner: Owner = locks.owner();
    let _guard = lock(&locks).acquire().owner(&owner).await.unwrap();
    world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Hold).always());
    let since = world.now();
    let acquire = lock(&locks).acquire().owner(&owner).wait(millis(50));
    let waiting = crate::support::Waiting::on(acquire);
    let (inner, _) = waiting.taken_within(&world, secs(10)).await;
    let after = world.now().saturating_since(since);
    assert!(after <= millis(50) + LOOK, "{after:?}");
    assert!(inner.is_held());
}
