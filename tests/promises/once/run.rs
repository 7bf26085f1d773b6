use std::{future::pending, io};

use leasehold::{
    Acquire, Lease, LockRuntime,
    error::{AcquireError, WithError},
    once::{OnceOutcome, Progress},
};
use leasehold_testkit::{CommandKind, Fault, Rule};
use tokio::task::JoinHandle;

use super::words::{NAME, duplicate, first, submission};
use crate::support::{World, millis, on_every_store, secs};

fn broken() -> io::Error {
    io::Error::other("the card was refused")
}

/// A run that does not end by itself, once it has begun.
async fn endless_run(
    world: &World,
    locks: &LockRuntime,
) -> JoinHandle<Result<OnceOutcome<()>, WithError<io::Error>>> {
    let submission = submission(locks);
    let task = tokio::spawn(async move { submission.run(|_| pending::<io::Result<()>>()).await });
    world.until("it runs", async || world.holder(NAME).await.is_some()).await;
    task
}

on_every_store! {
    async fn the_first_runs_and_the_second_is_told(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let work = |lease: Lease| async move { Ok::<_, io::Error>(lease.fence()) };
        let ran = submission(&locks).run(work).await.unwrap();
        let OnceOutcome::Ran(fence) = ran else { panic!("{ran:?}") };
        let again = submission(&other).run(work).await.unwrap();
        let OnceOutcome::Duplicate(duplicate) = again else { panic!("{again:?}") };
        assert_eq!((duplicate.fence, duplicate.progress), (fence, Progress::Done));
        assert_eq!(OnceOutcome::<()>::Duplicate(duplicate).ran(), None);
    }

    async fn an_error_opens_the_door_and_is_passed_on(world: World) {
        let locks = world.runtime(1);
        let failed = submission(&locks).run(|_| async { Err::<(), _>(broken()) }).await;
        let Err(WithError::Body(error)) = failed else { panic!("{failed:?}") };
        assert_eq!(error.to_string(), "the card was refused");
        assert!(world.holder(NAME).await.is_none());
        let ran = submission(&locks).run(|_| async { Ok::<_, io::Error>(7) }).await.unwrap();
        assert_eq!(ran.ran(), Some(7));
    }

    async fn a_panic_opens_the_door(world: World) {
        let locks = world.runtime(1);
        let submission = submission(&locks);
        let panics = tokio::spawn(async move {
            submission.run(|_| async { panics() }).await
        });
        assert!(panics.await.unwrap_err().is_panic());
        world.until_free(NAME).await;
        let _run = first(&locks).await;
    }

    /// A client that hangs up cancels its request.
    async fn a_cancelled_run_opens_the_door(world: World) {
        let locks = world.runtime(1);
        let task = endless_run(&world, &locks).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        world.until_free(NAME).await;
        let _run = first(&locks).await;
    }

    /// The future is dropped where it stands.
    async fn a_run_whose_lease_is_lost_is_stopped(world: World) {
        let locks = world.runtime(1);
        let task = endless_run(&world, &locks).await;
        locks.force_release(NAME).await.unwrap();
        world.until("it is stopped", async || task.is_finished()).await;
        let ended = task.await.unwrap();
        assert!(matches!(ended, Err(WithError::Lost(_))), "{ended:?}");
    }
}

/// Finished work is a success, within one command timeout, and the runtime goes on closing the
/// door.
#[tokio::test]
async fn a_run_that_nobody_confirms_is_a_success() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).always());
    let task = tokio::spawn({
        let submission = submission(&locks);
        async move { submission.run(|_| async { Ok::<_, io::Error>("receipt 7") }).await }
    });
    world.pass(secs(2)).await;
    assert!(task.is_finished(), "it has one command timeout");
    assert_eq!(task.await.unwrap().unwrap().ran(), Some("receipt 7"));
    world.pass(secs(3)).await;
    world.store.heal();
    world.pass(millis(2_250)).await;
    assert_eq!(duplicate(&other).await.progress, Progress::Done);
}

/// The value does not tell it, so the log does; also of very many, in few lines.
#[tokio::test]
async fn a_success_that_nobody_confirms_is_logged_by_name() {
    let (log, _collecting) = leasehold_testkit::Log::as_services_see_it();
    let world = World::new();
    let locks = world.runtime(1);
    let ran = submission(&locks).run(|_| async { Ok::<_, io::Error>(()) }).await.unwrap();
    assert!(ran.ran().is_some());
    assert_eq!(log.lines(), [""; 0], "a door that is known to be closed is no news");
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).always());
    let run = |name: String| {
        let once = locks.once(name).unwrap();
        tokio::spawn(async move { once.run(|_| async { Ok::<_, io::Error>(()) }).await })
    };
    let ran = run("nightly".into());
    world.pass(secs(2)).await;
    assert!(ran.await.unwrap().unwrap().ran().is_some());
    let lines = log.with("nightly");
    let told: Vec<_> = lines.iter().filter(|line| line.contains("not confirmed")).collect();
    assert_eq!(told.len(), 1, "{:?}", log.lines());
    for words in ["WARN", "lock=nightly", "lease=", "fence=", "the work is done"] {
        assert!(told[0].contains(words), "{words}: {told:?}");
    }
    let many: Vec<_> = (0..100).map(|number| run(format!("many/{number}"))).collect();
    world.pass(secs(2)).await;
    for ran in many {
        assert!(ran.await.unwrap().unwrap().ran().is_some());
    }
    let told = log.with("not confirmed");
    assert!((2..=10).contains(&told.len()), "{}", told.len());
}

/// Cancelled after the work was done, and while the server is told: the door is closed.
#[tokio::test]
async fn a_run_that_is_cancelled_after_its_success_keeps_the_door_closed() {
    let world = World::new();
    let locks = world.runtime(1);
    let gate = leasehold_testkit::Gate::new();
    world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Release));
    let task = tokio::spawn({
        let submission = submission(&locks);
        async move { submission.run(|_| async { Ok::<_, io::Error>(()) }).await }
    });
    world.settle().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    gate.open();
    world.pass(millis(300)).await;
    assert_eq!(duplicate(&locks).await.progress, Progress::Done);
    world.pass(secs(60)).await;
    let _run = first(&locks).await;
}

/// Errors of a beginning are passed on; nothing is called.
#[tokio::test]
async fn without_a_beginning_nothing_runs() {
    let world = World::new();
    let locks = world.runtime(1);
    let _ = locks.shutdown(secs(1)).await;
    let mut called = false;
    let ended = submission(&locks)
        .run(|_| {
            called = true;
            async { Ok::<_, io::Error>(()) }
        })
        .await;
    assert!(matches!(ended, Err(WithError::Acquire(AcquireError::ShutDown { .. }))));
    assert!(!called);
}

fn panics() -> io::Result<()> {
    panic!("a run that panics")
}

/// Runs are as mobile as acquires.
#[test]
fn runs_are_send() {
    fn is_send<T: Send>() {}
    is_send::<Acquire>();
    is_send::<leasehold::once::Once>();
    is_send::<leasehold::once::OnceGuard>();
    is_send::<leasehold::once::Begun>();
}
