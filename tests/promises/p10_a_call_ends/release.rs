use std::time::Duration;

use leasehold::{LockRuntime, Released, error::ReleaseError};
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{
    World, config, definite, indeterminate, just_before, lock, millis, nanos, secs,
};

const NAME: &str = World::NAME;

/// The command timeout unless another is chosen.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The server is away: no command comes through, or no answer comes back.
fn outages() -> [Fault; 3] {
    [Fault::LoseRequest, Fault::LoseReply, Fault::Fail(definite())]
}

fn scene(fault: &Fault) -> (World, LockRuntime) {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(fault.clone()).on(CommandKind::Release).always());
    (world, locks)
}

#[tokio::test]
async fn a_release_answers_within_one_command_timeout() {
    for fault in outages() {
        let (world, locks) = scene(&fault);
        let guard = lock(&locks).acquire().await.unwrap();
        let release = tokio::spawn(guard.release());
        world.pass(just_before(TIMEOUT)).await;
        assert!(!release.is_finished(), "{fault:?}: it has its time");
        world.pass(nanos(1)).await;
        assert!(release.is_finished(), "{fault:?}");
        let told = release.await.unwrap();
        assert!(matches!(told, Err(ReleaseError::Unconfirmed { .. })), "{fault:?}: {told:?}");
    }
}

/// The ttl is shorter than two command timeouts: a command has half of it.
#[tokio::test]
async fn a_release_of_a_short_lease_answers_within_half_its_ttl() {
    let (world, locks) = scene(&Fault::LoseRequest);
    let guard = lock(&locks).acquire().ttl(secs(1)).await.unwrap();
    let release = tokio::spawn(guard.release());
    world.pass(millis(500)).await;
    assert!(release.is_finished());
}

#[tokio::test]
async fn the_runtime_goes_on_telling_what_a_release_could_not() {
    for fault in outages() {
        let (world, locks) = scene(&fault);
        let guard = lock(&locks).acquire().await.unwrap();
        let release = tokio::spawn(guard.release());
        world.pass(secs(5)).await;
        assert!(release.await.unwrap().is_err());
        assert_eq!(locks.footprint().pending, 1, "{fault:?}: it is counted until it is done");
        // The server is back: the lock is free within the next try, long before the ttl.
        world.store.heal();
        world.pass(TIMEOUT + millis(250)).await;
        assert!(world.holder(NAME).await.is_none(), "{fault:?}");
        assert_eq!(locks.footprint().pending, 0, "{fault:?}");
    }
}

/// The control: nobody goes on, and the lock stays closed until the ttl is over.
#[tokio::test]
async fn without_the_runtime_only_the_ttl_opens_the_lock() {
    let (world, locks) = scene(&Fault::LoseRequest);
    let guard = lock(&locks).acquire().await.unwrap();
    let release = tokio::spawn(guard.release());
    world.pass(secs(5)).await;
    assert!(release.await.unwrap().is_err());
    world.pass(just_before(secs(5))).await;
    assert!(world.holder(NAME).await.is_some());
    world.pass(nanos(1)).await;
    assert!(world.holder(NAME).await.is_none());
}

/// What the runtime is told within the command timeout, the release tells.
#[tokio::test]
async fn a_failure_that_passes_within_the_timeout_is_not_told() {
    for fault in [Fault::Fail(definite()), Fault::Fail(indeterminate())] {
        let world = World::new();
        let locks = world.runtime(1);
        world.store.inject(Rule::new(fault.clone()).on(CommandKind::Release).times(5));
        let guard = lock(&locks).acquire().await.unwrap();
        let release = tokio::spawn(guard.release());
        world.until("it is answered", async || release.is_finished()).await;
        assert_eq!(release.await.unwrap().unwrap(), Released::Ended, "{fault:?}");
        assert!(world.holder(NAME).await.is_none());
    }
}

/// What trying again does not mend is told at once.
#[tokio::test]
async fn a_refusal_is_told_at_once() {
    let (world, locks) = scene(&Fault::Fail(config()));
    let guard = lock(&locks).acquire().await.unwrap();
    let told = guard.release().await;
    assert!(matches!(told, Err(ReleaseError::Unconfirmed { .. })), "{told:?}");
    assert_eq!(world.store.sent(CommandKind::Release), 1);
}

/// A shutdown waits for what a release left to the runtime, and reports it.
#[tokio::test]
async fn what_a_release_left_behind_counts_in_a_shutdown() {
    let (world, locks) = scene(&Fault::LoseRequest);
    let guard = lock(&locks).acquire().await.unwrap();
    let release = tokio::spawn(guard.release());
    world.pass(secs(3)).await;
    assert!(release.await.unwrap().is_err());
    let (report, ()) = tokio::join!(biased; locks.shutdown(secs(1)), world.pass(secs(1)));
    assert_eq!((report.held, report.unreleased.len()), (0, 1));
    world.store.heal();
    let (report, ()) = tokio::join!(biased; locks.shutdown(secs(3)), world.pass(secs(3)));
    assert_eq!((report.held, report.unreleased), (0, vec![]));
    assert!(world.holder(NAME).await.is_none());
}

/// The rest of a minimum is kept by the runtime, too.
#[tokio::test]
async fn a_release_that_keeps_its_lock_closed_answers_in_time_and_is_kept() {
    let (world, locks) = scene(&Fault::LoseRequest);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    let release = tokio::spawn(guard.release());
    world.pass(TIMEOUT).await;
    assert!(release.is_finished());
    assert!(matches!(release.await.unwrap(), Err(ReleaseError::Unconfirmed { .. })));
    world.store.heal();
    world.pass(TIMEOUT + millis(250)).await;
    assert!(world.holder(NAME).await.is_some_and(|record| record.kept));
}

/// A hold that is not the last, and a re-entry: the server is told later, the count stands.
#[tokio::test]
async fn holds_answer_within_one_command_timeout() {
    for fault in outages() {
        let world = World::new();
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().await.unwrap();
        world.store.inject(Rule::new(fault.clone()).on(CommandKind::Hold).always());
        let (again, ()) = tokio::join!(biased; guard.reenter(), world.pass(TIMEOUT));
        let inner = again.unwrap();
        let released = tokio::spawn(inner.release());
        world.pass(TIMEOUT).await;
        assert!(released.is_finished(), "{fault:?}");
        assert!(matches!(released.await.unwrap(), Ok(Released::StillHeld(_))), "{fault:?}");
        world.store.heal();
        world.pass(TIMEOUT + millis(250)).await;
        assert_eq!(world.holds(NAME).await, 1);
        guard.release().await.unwrap();
    }
}

/// The belief ended while the answer was awaited: the hold is off a lease that is lost.
#[tokio::test]
async fn a_hold_that_outlives_its_lease_is_told_as_a_loss() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let inner = guard.reenter().await.unwrap();
    let any = [CommandKind::Hold, CommandKind::Renew];
    for kind in any {
        world.store.inject(Rule::new(Fault::LoseRequest).on(kind).always());
    }
    world.pass(millis(9_000)).await;
    let released = tokio::spawn(inner.release());
    world.pass(TIMEOUT).await;
    let told = released.await.unwrap();
    assert!(matches!(told, Err(ReleaseError::Lost(_))), "{told:?}");
}

/// The lock is not free when the server hears of it: it is kept closed.
#[tokio::test]
async fn an_unconfirmed_release_says_what_becomes_of_the_lock() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).always());
    for (keeps, says, not) in [(true, "stays closed", "is free"), (false, "is free", "closed")] {
        let acquire = locks.lock(format!("keeps-{keeps}")).unwrap().acquire();
        let acquire = if keeps { acquire.min_hold(secs(60)) } else { acquire };
        let guard = acquire.await.unwrap();
        let (told, ()) = tokio::join!(biased; guard.release(), world.pass(TIMEOUT));
        let text = told.unwrap_err().to_string();
        assert!(text.contains(says) && !text.contains(not), "{text}");
    }
}

/// In an outage too: a task that waits here goes on in memory, and nothing is asked.
#[tokio::test]
async fn a_release_with_a_local_waiter_ends_at_once_in_an_outage() {
    let world = World::new();
    let locks = world.runtime(1);
    crate::support::warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().await.unwrap();
    let next = crate::support::Waiting::queued(&world, &locks).await;
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    assert_eq!(guard.release().await.unwrap(), Released::Ended);
    assert!(next.taken(&world).await.is_held());
}

/// The claim window is shorter than the command timeout, so the runtime sends a copy of its own
/// while the holder still waits. An answer to that copy is not the answer to the holder's.
#[tokio::test]
async fn a_release_is_not_called_ended_because_another_copy_was_answered() {
    for fault in [None, Some(Fault::Fail(config()))] {
        let world = World::new();
        let locks = world.start(world.builder(1).claim_window(millis(50)));
        let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
        world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release));
        if let Some(fault) = fault.clone() {
            world.store.inject(Rule::new(fault).on(CommandKind::Release).nth(2).always());
        }
        let release = tokio::spawn(guard.release());
        world.pass(millis(100)).await;
        assert_eq!(
            world.store.sent(CommandKind::Release),
            2,
            "{fault:?}: the runtime has sent one"
        );
        world.pass(TIMEOUT).await;
        assert!(release.is_finished(), "{fault:?}: it ends in time");
        let told = release.await.unwrap();
        let is_known = matches!(told, Ok(Released::Kept { .. })) && fault.is_none();
        let is_unknown = matches!(told, Err(ReleaseError::Unconfirmed { .. }));
        assert!(is_known || is_unknown, "{fault:?}: {told:?}");
        world.pass(millis(250)).await;
        assert_eq!(locks.footprint().pending, 0, "{fault:?}");
        let kept = world.holder(NAME).await.is_some_and(|record| record.kept);
        assert_eq!(kept, fault.is_none());
    }
}
