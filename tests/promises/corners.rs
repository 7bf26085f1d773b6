//! Corners where a hold could outlive its welcome: unanswered tries, short ttls, panics, shutdown.

use std::sync::{Arc, atomic::Ordering};

use leasehold::{LockRuntime, error::AcquireError, store::Inspection};
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{BrokenClock, World, at_most_polls, millis, poll_once, secs};

const NAME: &str = World::NAME;

/// P8: after a try whose answer was lost, a future that nobody polls is watched all the same.
#[tokio::test]
async fn an_unanswered_try_that_nobody_polls_again_is_withdrawn() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)));
    world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Acquire));
    let mut acquire = Box::pin(locks.lock(NAME).unwrap().acquire());
    assert!(poll_once(acquire.as_mut()).is_pending());
    // The answer is given up after 2 s; polled once there, and never again.
    world.pass(secs(2)).await;
    assert!(poll_once(acquire.as_mut()).is_pending());
    assert!(world.holder(NAME).await.is_some(), "the command was executed");
    world.pass(secs(3) + millis(250)).await;
    assert!(world.holder(NAME).await.is_none(), "the claim window is over");
    assert_eq!(world.store.executed(CommandKind::Withdraw), 1);
    // Polled at last, it starts anew.
    let (guard, ()) = tokio::join!(biased; acquire, world.pass(secs(1)));
    let guard = guard.unwrap();
    assert_eq!(guard.id().number(), 2);
}

/// A release that was lost is tried again within the ttl, however short that is.
#[tokio::test]
async fn the_reaper_tries_again_before_a_short_ttl_is_over() {
    for ttl in [millis(500), secs(2)] {
        let world = World::new();
        let locks = world.start(world.builder(1).ttl(ttl));
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release));
        drop(guard);
        world.pass(ttl / 2 + millis(10)).await;
        assert_eq!(world.store.executed(CommandKind::Release), 1, "{ttl:?}");
        assert!(world.holder(NAME).await.is_none(), "{ttl:?}");
    }
}

/// A panic of the task that asks for those who wait: they hear of it, and nobody spins.
#[test]
fn the_end_of_the_heartbeats_is_told_to_those_who_wait() {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        done.send(tokio.block_on(wait_for_dead_heartbeats())).unwrap();
    });
    let error = leasehold_testkit::Patience::of(secs(20)).until(|| ended.try_recv().ok());
    let error = error.expect("it hears of it");
    assert!(matches!(&error, AcquireError::Store(_)), "{error}");
}

async fn wait_for_dead_heartbeats() -> AcquireError {
    let clock = BrokenClock::default();
    let shown = clock.clone();
    let world = World::on_clock(&clock.manual, move |_| Arc::new(shown.clone()));
    let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
    let _held = other.lock(NAME).unwrap().acquire().await.unwrap();
    let mut waiting = Box::pin(locks.lock(NAME).unwrap().acquire().wait_forever());
    // The watchdog is asleep by now; the heartbeats' task is woken for the new waiter.
    world.settle().await;
    assert!(poll_once(waiting.as_mut()).is_pending());
    clock.broken.store(true, Ordering::Relaxed);
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
    clock.broken.store(false, Ordering::Relaxed);
    waiting.await.unwrap_err()
}

/// P6: a store that panics says nothing about the lease.
#[tokio::test]
async fn a_renewal_that_panics_is_tried_again() {
    let world = World::new();
    world.store.inject(Rule::new(Fault::Panic).on(CommandKind::Renew));
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    world.pass(secs(5)).await;
    assert!(world.store.sent(CommandKind::Renew) >= 2, "the first one panics");
    world.pass(secs(60)).await;
    assert!(guard.is_held());
}

/// A release that somebody else awaits counts as well: it is waited for, and reported if it fails.
#[tokio::test]
async fn a_shutdown_reports_an_explicit_release_that_fails() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).always());
    let (released, report, ()) =
        tokio::join!(biased; guard.release(), locks.shutdown(secs(20)), world.pass(secs(15)));
    assert!(released.is_err());
    let unreleased: Vec<_> = report.unreleased.iter().map(ToString::to_string).collect();
    assert_eq!((report.held, unreleased), (0, vec![NAME.to_owned()]));
}

/// What a shutdown does not report as unreleased is free, also when acquires race with it.
#[test]
fn a_shutdown_that_reports_nothing_leaves_nothing() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let tokio = builder.worker_threads(2).enable_all().build().unwrap();
    for _ in 0..5_000 {
        tokio.block_on(async {
            let world = World::new();
            let locks = world.runtime(1);
            let racing: Vec<_> = (0..4).map(|n| tokio::spawn(take(locks.clone(), n))).collect();
            let report = locks.shutdown(secs(5)).await;
            assert!(report.unreleased.is_empty(), "{report:?}");
            for n in 0..4 {
                let found = locks.inspect(format!("race/{n}")).await.unwrap();
                assert!(matches!(found, Inspection::Free { .. }), "{found:?}");
            }
            for one in racing {
                assert!(matches!(one.await.unwrap(), None | Some(false)));
            }
        });
    }
}

/// Acquires a lock; whether it is held, and `None` if the runtime was shut down before.
async fn take(locks: LockRuntime, n: usize) -> Option<bool> {
    match locks.lock(format!("race/{n}")).unwrap().acquire().await {
        Ok(guard) => Some(guard.lost().await == leasehold::LeaseEnd::Released),
        Err(AcquireError::ShutDown { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Users poll an acquire by reference, as in a loop of `select!`: it is over once.
#[tokio::test]
async fn an_acquire_that_is_polled_once_more_stays_pending() {
    let world = World::new();
    let locks = world.runtime(1);
    let mut acquire = locks.lock(NAME).unwrap().acquire();
    let guard = (&mut acquire).await.unwrap();
    assert!(at_most_polls(1, &mut acquire).await.is_none());
    guard.release().await.unwrap();
    let mut all = locks.all(["a", "b"]).unwrap().acquire();
    drop((&mut all).await.unwrap());
    assert!(at_most_polls(1, &mut all).await.is_none());
}
