use leasehold::{
    error::{AcquireError, ReleaseError, StoreErrorKind},
    once::Progress,
};
use leasehold_testkit::{CommandKind, Fault, Rule};

use super::words::{NAME, WINDOW, duplicate, first, submission};
use crate::support::{World, indeterminate, millis, secs};

/// The connection breaks before the reply to the success: it is asked for again, and confirmed.
#[tokio::test]
async fn a_success_whose_reply_is_lost_is_confirmed_in_the_end() {
    let world = World::new();
    let locks = world.runtime(1);
    let run = first(&locks).await;
    world.store.inject(Rule::new(Fault::BreakReply).on(CommandKind::Release).times(3));
    let (began, succeed) = (world.now(), tokio::spawn(run.succeed()));
    world.until("it is answered", async || succeed.is_finished()).await;
    succeed.await.unwrap().unwrap();
    assert_eq!(world.store.executed(CommandKind::Release), 4);
    // The window began with the first copy, and was not prolonged by the others.
    let passed = world.now().saturating_since(began);
    assert_eq!(duplicate(&locks).await.remaining, WINDOW.saturating_sub(passed));
}

/// No reply ever: the work is done, and nobody says that the lock is closed.
#[tokio::test]
async fn a_success_that_nobody_confirms_is_no_success() {
    for executed in [true, false] {
        let world = World::new();
        let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
        let run = first(&locks).await;
        let fault = if executed { Fault::LoseReply } else { Fault::LoseRequest };
        world.store.inject(Rule::new(fault).on(CommandKind::Release).always());
        let succeed = tokio::spawn(run.succeed());
        world.pass(secs(2)).await;
        assert!(succeed.is_finished(), "it has one command timeout");
        let told = succeed.await.unwrap();
        let Err(error @ ReleaseError::Unconfirmed { .. }) = told else { panic!("{told:?}") };
        for word in [NAME, "what was done is done", "not confirmed", "refuse a second write"] {
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
        world.pass(secs(10)).await;
        if executed {
            assert_eq!(duplicate(&other).await.progress, Progress::Done);
        } else {
            // The ttl is over: the door is open, as the error says.
            let _run = first(&other).await;
        }
    }
}

/// The answer may come after the call: the runtime goes on, and the lock is closed.
#[tokio::test]
async fn a_success_that_is_confirmed_later_closes_the_lock() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
    let run = first(&locks).await;
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).times(2));
    let succeed = tokio::spawn(run.succeed());
    world.pass(secs(2)).await;
    assert!(matches!(succeed.await.unwrap(), Err(ReleaseError::Unconfirmed { .. })));
    world.pass(millis(2_500)).await;
    assert_eq!(duplicate(&other).await.progress, Progress::Done);
}

/// An operator opened the door between the success and its repeat: that is no success either.
#[tokio::test]
async fn a_door_that_was_opened_before_the_success_was_confirmed_is_told() {
    let world = World::new();
    let locks = world.runtime(1);
    let run = first(&locks).await;
    world.store.inject(Rule::new(Fault::BreakReply).on(CommandKind::Release));
    let gate = leasehold_testkit::Gate::new();
    world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Release).nth(2));
    let succeed = tokio::spawn(run.succeed());
    world.settle().await;
    world.another_line().runtime(2).force_release(NAME).await.unwrap();
    gate.open();
    world.until("it is answered", async || succeed.is_finished()).await;
    let told = succeed.await.unwrap();
    assert!(matches!(told, Err(ReleaseError::Lost(_))), "{told:?}");
}

/// Whether it may begin is not known: nothing is begun, and nothing is left of it.
#[tokio::test]
async fn a_beginning_whose_reply_is_lost_is_withdrawn() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
    world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Acquire));
    let begin = tokio::spawn({
        let submission = submission(&locks);
        async move { submission.begin().await }
    });
    world.until("it gives up", async || begin.is_finished()).await;
    let told = begin.await.unwrap();
    let Err(AcquireError::Unavailable(outage)) = told else { panic!("{told:?}") };
    assert_eq!(outage.error.kind(), StoreErrorKind::Indeterminate);
    world.until_free(NAME).await;
    let _run = first(&other).await;
}

/// Nobody can tell who came first: an error, and no duplicate out of thin air.
#[tokio::test]
async fn a_duplicate_that_cannot_be_told_by_whom_is_an_error() {
    let world = World::new();
    let (locks, other) = (world.another_line().runtime(1), world.runtime(2));
    let _run = first(&locks).await;
    world.store.inject(Rule::new(Fault::Fail(indeterminate())).on(CommandKind::Inspect));
    let told = submission(&other).begin().await;
    assert!(matches!(told, Err(AcquireError::Unavailable(_))), "{told:?}");
    let _ = duplicate(&other).await;
}

/// A command of another task of the process is on its way: the caller looks again until it is
/// there.
#[tokio::test]
async fn two_callers_of_a_process_at_once_are_one_run_and_one_duplicate() {
    let world = World::new();
    let locks = world.runtime(1);
    let gate = leasehold_testkit::Gate::new();
    world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Acquire));
    let begin = || {
        let submission = submission(&locks);
        tokio::spawn(async move { submission.begin().await })
    };
    let (one, two) = (begin(), begin());
    world.pass(millis(300)).await;
    assert!(!one.is_finished() && !two.is_finished());
    gate.open();
    world.pass(millis(300)).await;
    let answers = [one.await.unwrap().unwrap(), two.await.unwrap().unwrap()];
    let firsts =
        answers.iter().filter(|begun| matches!(begun, leasehold::once::Begun::First(_))).count();
    assert_eq!(firsts, 1, "{answers:?}");
}

/// It never comes: the second caller gives up, and says that nothing was begun.
#[tokio::test]
async fn a_caller_beside_one_that_never_gets_there_gives_up() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Acquire));
    let begin = || {
        let submission = submission(&locks);
        tokio::spawn(async move { submission.begin().await })
    };
    let (one, two) = (begin(), begin());
    world.pass(secs(4)).await;
    let told = [one.await.unwrap(), two.await.unwrap()];
    assert!(matches!(&told[0], Err(AcquireError::Unavailable(_))), "{told:?}");
    match &told[1] {
        // The first gave up in time for the second to begin, or it did not.
        Ok(leasehold::once::Begun::First(_)) => {}
        Err(AcquireError::Unavailable(outage)) => {
            assert!(outage.to_string().contains("nothing was begun"), "{outage}");
        }
        other => panic!("{other:?}"),
    }
}
