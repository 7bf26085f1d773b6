use std::{convert::Infallible, future::IntoFuture, time::Duration};

use leasehold::{LeaseEnd, LockRuntime, LossReason, ShutdownReport, error::AcquireError};
use leasehold_testkit::{CommandKind, Fault, Log, Rule};
use tokio::task::JoinHandle;

use crate::support::{Waiting, World, at_most_polls, just_before, lock, millis, nanos, secs};

const NAME: &str = World::NAME;
/// Three times the ttl: what is held for as long is renewed.
const TIME: Duration = Duration::from_secs(30);
/// The command timeout unless another is chosen.
const TIMEOUT: Duration = Duration::from_secs(2);

fn drain(locks: &LockRuntime, time: Duration) -> JoinHandle<ShutdownReport> {
    let locks = locks.clone();
    tokio::spawn(async move { locks.drain(time).await })
}

#[tokio::test]
async fn a_drain_refuses_new_leases_and_lets_guards_end() {
    let world = World::new();
    let locks = world.runtime(1);
    let owner = locks.owner();
    let guard = lock(&locks).acquire().owner(&owner).await.unwrap();
    let waiting = Waiting::queued(&world, &locks).await;
    let drain = drain(&locks, TIME);
    world.settle().await;

    assert!(waiting.is_over(), "those who wait are sent away at once");
    assert!(matches!(waiting.outcome().await, Err(AcquireError::ShutDown { .. })));
    let other = locks.lock("orders/43").unwrap();
    for told in [other.acquire().await.unwrap_err(), other.try_acquire().await.unwrap_err()] {
        assert!(matches!(told, AcquireError::ShutDown { .. }), "{told}");
    }
    let begun = locks.once("orders/44").unwrap().begin().await;
    assert!(matches!(begun, Err(AcquireError::ShutDown { .. })), "{begun:?}");

    // What is held goes on: it is renewed, and it can be entered by its guard, owner and scope.
    world.pass(secs(25)).await;
    assert!(guard.is_held() && !drain.is_finished());
    let by_guard = guard.reenter().await.unwrap();
    let by_owner = lock(&locks).acquire().owner(&owner).await.unwrap();
    let by_scope = owner.scope(lock(&locks).acquire().into_future()).await.unwrap();
    assert_eq!(by_scope.fence(), guard.fence());
    for inner in [by_guard, by_owner, by_scope] {
        inner.release().await.unwrap();
    }
    assert!(!drain.is_finished());
    guard.release().await.unwrap();
    world.settle().await;
    assert!(drain.is_finished(), "nothing is left to wait for");
    let report = drain.await.unwrap();
    assert_eq!((report.held, report.unreleased), (0, vec![]));
    assert!(world.holder(NAME).await.is_none());
}

/// The control: a shutdown takes the lease away from its holder at once.
#[tokio::test]
async fn a_shutdown_lets_nobody_end() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    assert_eq!(locks.shutdown(TIME).await.held, 1);
    assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::Shutdown));
}

#[tokio::test]
async fn a_drain_ends_what_is_left_when_its_time_is_over() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let drain = drain(&locks, TIME);
    world.pass(just_before(TIME)).await;
    assert!(guard.is_held());
    world.pass(nanos(1)).await;
    assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::Shutdown));
    let report = drain.await.unwrap();
    assert_eq!((report.held, report.unreleased), (1, vec![]));
    assert!(world.holder(NAME).await.is_none());
}

/// The server is away when the time is over: one command timeout more, and the report says what is
/// left.
#[tokio::test]
async fn a_drain_answers_when_the_server_does_not() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let done = locks.lock("done").unwrap().acquire().await.unwrap();
    let drain = drain(&locks, secs(5));
    world.settle().await;
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).always());
    drop(done);
    world.pass(just_before(secs(5) + TIMEOUT)).await;
    assert!(!drain.is_finished());
    world.pass(nanos(1)).await;
    assert!(drain.is_finished());
    let report = drain.await.unwrap();
    let unreleased: Vec<_> = report.unreleased.iter().map(ToString::to_string).collect();
    assert_eq!((report.held, &unreleased[..]), (1, &["done".into(), NAME.into()][..]));
    drop(guard);
}

#[tokio::test]
async fn a_second_call_waits_for_the_same_drain() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let first = drain(&locks, TIME);
    world.pass(secs(10)).await;
    let second = drain(&locks, millis(1));
    world.pass(just_before(secs(20))).await;
    assert!(guard.is_held() && !first.is_finished() && !second.is_finished());
    world.pass(nanos(1)).await;
    let (first, second) = (first.await.unwrap(), second.await.unwrap());
    assert_eq!((first.held, &first), (1, &second));
    // One that comes later has the same report, at once.
    assert_eq!(at_most_polls(1, locks.drain(TIME)).await, Some(first));
}

#[tokio::test]
async fn a_drain_whose_future_is_dropped_goes_on() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    assert!(at_most_polls(1, locks.drain(secs(5))).await.is_none());
    assert!(lock(&locks).try_acquire().await.is_err());
    world.pass(just_before(secs(5))).await;
    assert!(guard.is_held());
    world.pass(nanos(1)).await;
    assert!(!guard.is_held());
    assert!(world.holder(NAME).await.is_none());
    // Never polled, it has not begun.
    let locks = world.runtime(2);
    drop(locks.drain(TIME));
    assert!(lock(&locks).try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_shutdown_ends_a_drain_early() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let drain = drain(&locks, TIME);
    world.pass(secs(1)).await;
    assert_eq!(locks.shutdown(secs(1)).await.held, 1);
    world.settle().await;
    assert!(drain.is_finished());
    assert_eq!(drain.await.unwrap().held, 0);
    drop(guard);
}

/// Who holds a lease for long ends its work, and releases its lease.
#[tokio::test]
async fn holders_learn_that_a_drain_has_begun() {
    let world = World::new();
    let locks = world.runtime(1);
    let (guard, draining) = (lock(&locks).acquire().await.unwrap(), locks.draining());
    let leader = tokio::spawn(async move {
        draining.await;
        guard.release().await
    });
    let (other, draining) = (locks.lock("orders/43").unwrap(), locks.draining());
    let body = tokio::spawn(async move {
        let until_then = async {
            draining.await;
            Ok::<_, Infallible>(())
        };
        other.with(|_| until_then).await
    });
    world.pass(secs(100)).await;
    assert!(!leader.is_finished() && !body.is_finished());
    let waiting = Waiting::queued(&world, &locks).await;
    let drain = drain(&locks, TIME);
    world.settle().await;
    assert!(waiting.is_over() && drain.is_finished());
    leader.await.unwrap().unwrap();
    body.await.unwrap().unwrap();
    let report = drain.await.unwrap();
    assert_eq!((report.held, report.unreleased), (0, vec![]));
    assert_eq!(at_most_polls(1, locks.draining()).await, Some(()), "also for those who come later");
}

#[tokio::test]
async fn holders_learn_that_a_shutdown_has_begun_or_that_nobody_can_begin_one() {
    let world = World::new();
    let locks = world.runtime(1);
    let mut draining = locks.draining();
    assert_eq!(at_most_polls(1, &mut draining).await, None);
    let _ = locks.shutdown(TIME).await;
    assert_eq!(at_most_polls(1, &mut draining).await, Some(()));
    assert_eq!(at_most_polls(1, &mut draining).await, None, "in a loop it is told once");

    // It keeps neither the runtime nor its tasks.
    let mut draining = world.runtime(2).draining();
    world.settle().await;
    assert_eq!(at_most_polls(1, &mut draining).await, Some(()));
}

/// Its own process has asked for it: an operator has nothing to look for.
#[tokio::test]
async fn a_lease_that_a_drain_ends_is_no_loss_in_the_log() {
    for drains in [true, false] {
        let (log, _collecting) = Log::as_services_see_it();
        let world = World::new();
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().await.unwrap();
        if drains {
            let drain = drain(&locks, TIME);
            world.pass(TIME).await;
            assert_eq!(drain.await.unwrap().held, 1);
        } else {
            assert_eq!(locks.shutdown(TIME).await.held, 1);
        }
        assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::Shutdown));
        world.pass(secs(30)).await;
        let lines = log.lines();
        let [line] = &lines[..] else { panic!("{lines:#?}") };
        assert!(line.contains("INFO") && line.contains("leases=1"), "{line}");
    }
}

/// What to do next: the process is about to go, and nothing is to be connected anew in it.
#[tokio::test]
async fn a_refusal_says_whether_the_runtime_drains_or_was_shut_down() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let waiting = Waiting::queued(&world, &locks).await;
    let drain = drain(&locks, TIME);
    world.settle().await;
    let other = locks.lock("orders/43").unwrap();
    let refused = [waiting.outcome().await.unwrap_err(), other.acquire().await.unwrap_err()];
    for told in refused {
        let text = told.to_string();
        assert!(text.contains("is draining") && !text.contains("was shut down"), "{text}");
    }
    guard.release().await.unwrap();
    let _ = drain.await.unwrap();
    let text = other.acquire().await.unwrap_err().to_string();
    assert!(text.contains("was shut down") && !text.contains("is draining"), "{text}");
}

/// An acquire that failed leaves nothing that is held: it is no lease that was not released.
#[tokio::test]
async fn a_report_lists_leases_and_no_failed_acquires() {
    for drains in [true, false] {
        let world = World::new();
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().await.unwrap();
        world.store.inject(Rule::new(Fault::LoseRequest).always());
        let tried =
            tokio::spawn(locks.lock("tried").unwrap().acquire().wait(secs(1)).into_future());
        world.pass(secs(3)).await;
        assert!(tried.await.unwrap().is_err());
        let waiting = Waiting::on(locks.lock("waits").unwrap().acquire());
        world.settle().await;
        let ends = if drains {
            drain(&locks, secs(1))
        } else {
            let locks = locks.clone();
            tokio::spawn(async move { locks.shutdown(secs(1)).await })
        };
        world.pass(secs(4)).await;
        assert!(waiting.outcome().await.is_err());
        let report = ends.await.unwrap();
        let unreleased: Vec<_> = report.unreleased.iter().map(ToString::to_string).collect();
        assert_eq!((report.held, &unreleased[..]), (1, &[NAME.into()][..]), "drains: {drains}");
        drop(guard);
    }
}
