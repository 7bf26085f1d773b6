use leasehold::{
    LossReason,
    error::{LeaseLost, ReleaseError},
};
use leasehold_testkit::{Fault, Rule};

use super::words::{NAME, duplicate, first, submission};
use crate::support::{World, is_taken_away, just_before, millis, nanos, on_every_store, secs};

on_every_store! {
    async fn a_failed_run_opens_the_door_at_once(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let run = first(&locks).await;
        let fence = run.fence();
        run.fail().await.unwrap();
        assert!(world.holder(NAME).await.is_none());
        let again = first(&other).await;
        assert!(again.fence() > fence);
        again.fail().await.unwrap();
        let _run = first(&locks).await;
    }

    /// The next caller of the same process does not have to wait for the reaper.
    async fn a_dropped_run_opens_the_door_at_once(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        for _ in 0..3 {
            drop(first(&locks).await);
            world.until("it is open", async || world.holder(NAME).await.is_none()).await;
            drop(first(&other).await);
            world.until("it is open", async || world.holder(NAME).await.is_none()).await;
        }
    }

    /// A success that was called counts, also when nobody looks at what comes of it.
    async fn a_success_that_is_not_awaited_closes_the_door(world: World) {
        let locks = world.runtime(1);
        drop(first(&locks).await.succeed());
        world.until("it is kept", async || {
            world.holder(NAME).await.is_some_and(|record| record.kept)
        })
        .await;
        let _ = duplicate(&locks).await;
    }

    /// A success after the loss is an error that says what to do.
    async fn a_lost_run_is_told_and_succeeds_no_more(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let run = first(&locks).await;
        let lost = run.lost();
        locks.force_release(NAME).await.unwrap();
        let _ = lost.await;
        assert!(!run.is_held());
        let next = first(&other).await;
        let late = run.succeed().await;
        let Err(error @ ReleaseError::Lost(LeaseLost { reason, .. })) = late else { panic!("{late:?}") };
        assert!(is_taken_away(reason), "{reason}");
        assert!(error.to_string().contains("fence check"), "{error}");
        assert!(next.is_held(), "the next run is not touched");
        assert!(!world.holder(NAME).await.unwrap().kept);
    }
}

/// Right after a drop, the next caller of the process waits for the server to be told, and not for
/// any time to pass.
#[tokio::test]
async fn after_a_drop_the_next_caller_of_the_process_is_the_first() {
    let world = World::new();
    let locks = world.runtime(1);
    drop(first(&locks).await);
    let next = tokio::spawn({
        let submission = submission(&locks);
        async move { submission.begin().await }
    });
    world.pass(millis(10)).await;
    let begun = next.await.unwrap().unwrap();
    assert!(matches!(begun, leasehold::once::Begun::First(_)), "{begun:?}");
}

/// A process that is gone without a word: the door opens after the ttl, not before.
#[tokio::test]
async fn a_crashed_run_opens_the_door_after_its_ttl() {
    let world = World::new();
    let (gone, other) = (world.another_line(), world.runtime(2));
    let begun = submission(&gone.runtime(1)).ttl(secs(4)).begin().await.unwrap();
    gone.store.inject(Rule::new(Fault::LoseRequest).always());
    world.pass(just_before(secs(4))).await;
    let _ = duplicate(&other).await;
    world.pass(nanos(1)).await;
    let _run = first(&other).await;
    let leasehold::once::Begun::First(run) = begun else { panic!("nobody was before") };
    let late = run.fail().await;
    assert!(
        matches!(late, Err(ReleaseError::Lost(LeaseLost { reason: LossReason::Expired, .. }))),
        "{late:?}"
    );
}

/// A shutdown ends the run, which is lost and opens the door.
#[tokio::test]
async fn a_shutdown_opens_the_door_of_a_run_that_goes_on() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    let run = first(&locks).await;
    assert_eq!(locks.shutdown(secs(1)).await.held, 1);
    let _next = first(&other).await;
    let late = run.succeed().await;
    assert!(
        matches!(late, Err(ReleaseError::Lost(LeaseLost { reason: LossReason::Shutdown, .. }))),
        "{late:?}"
    );
}
