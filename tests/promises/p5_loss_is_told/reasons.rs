use std::{
    sync::{Arc, atomic::Ordering},
    task::Poll,
};

use leasehold::{
    LeaseEnd, LeaseState, LossReason,
    error::{LeaseLost, ReenterError, ReleaseError},
    time::Clock,
};
use leasehold_testkit::{
    CommandKind, Fault, Log, ManualClock, Rule,
    faulty::{PushFault, PushRule},
};

use crate::support::{
    BrokenClock, World, config, just_before, lock, millis, nanos, poll_once, secs, warm_up,
};

const NAME: &str = World::NAME;

#[tokio::test]
async fn max_hold_ends_the_lease_here_and_on_the_server() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().max_hold(secs(25)).await.unwrap();
    let lost = tokio::spawn(guard.lost());
    world.pass(just_before(secs(25))).await;
    assert!(guard.is_held(), "it is renewed until then");
    world.pass(nanos(1)).await;
    assert_eq!(lost.await.unwrap(), LeaseEnd::Lost(LossReason::MaxHold));
    // The guard lives and is never looked at: the watchdog ended the lease.
    assert!(world.holder(NAME).await.is_none());
    let error = guard.release().await.unwrap_err();
    assert!(
        matches!(error, ReleaseError::Lost(LeaseLost { reason: LossReason::MaxHold, .. })),
        "{error}"
    );
}

#[tokio::test]
async fn max_hold_counts_from_the_grant_and_covers_every_hold() {
    let world = World::new();
    let owner = world.runtime(1);
    let guard = owner.lock(NAME).unwrap().acquire().max_hold(secs(2)).await.unwrap();
    world.pass(secs(1)).await;
    let inner = guard.reenter().await.unwrap();
    world.pass(secs(1)).await;
    assert_eq!(inner.lease().state(), LeaseState::Lost(LossReason::MaxHold));
    let error = inner.reenter().await.unwrap_err();
    assert!(
        matches!(error, ReenterError::Lost(LeaseLost { reason: LossReason::MaxHold, .. })),
        "{error}"
    );
    assert!(world.holder(NAME).await.is_none());
}

/// Without a `max_hold` nothing of this happens.
#[tokio::test]
async fn without_a_max_hold_a_lease_goes_on() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    world.pass(secs(3_600)).await;
    assert!(guard.is_held() && world.holder(NAME).await.is_some());
}

#[tokio::test]
async fn a_fixed_lease_with_a_short_max_hold_ends_with_that() {
    let world = World::new();
    let locks = world.runtime(1);
    let lock = locks.lock(NAME).unwrap();
    let guard = lock.acquire().renew(false).max_hold(millis(500)).await.unwrap();
    assert_eq!(guard.remaining(), millis(500));
    world.pass(millis(500)).await;
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::MaxHold));
    assert!(world.holder(NAME).await.is_none());
}

/// Its end was planned: neither the server nor the process is to blame, and nobody has to look at it.
#[tokio::test]
async fn a_lease_that_was_not_to_be_renewed_says_so() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let locks = world.runtime(1);
    let lock = locks.lock(NAME).unwrap();
    let guard = lock.acquire().renew(false).await.unwrap();
    world.pass(secs(10)).await;
    let error = guard.release().await.unwrap_err().to_string();
    assert!(error.contains("lost: its time was over, and it was not to be renewed; "), "{error}");
    assert_eq!(log.with("WARN"), [""; 0]);
    // The control: the same end of a lease that was to be renewed.
    let guard = lock.acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Renew).always());
    world.pass(secs(10)).await;
    let error = guard.release().await.unwrap_err().to_string();
    assert!(error.contains("the server was out of reach"), "{error}");
    assert_eq!(log.with("lease lost").len(), 1, "{:?}", log.lines());
}

/// The tokio runtime that renews is gone: nobody believes in a lease that nobody renews.
#[test]
fn the_death_of_the_tokio_runtime_loses_every_lease() {
    let world = World::new();
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (locks, guard, lost) = tokio.block_on(async {
        let locks = world.runtime(1);
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let lost = guard.lost();
        world.settle().await;
        (locks, guard, lost)
    });
    assert!(guard.is_held());
    drop(tokio);
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::WatchdogStopped));
    assert!(guard.cancellation().is_cancelled());
    let elsewhere = tokio::runtime::Builder::new_current_thread().build().unwrap();
    elsewhere.block_on(async {
        assert_eq!(lost.await, LeaseEnd::Lost(LossReason::WatchdogStopped));
        // Nothing that is acquired after this is believed, and the call says so.
        let refused = locks.lock(NAME).unwrap().acquire().wait(secs(1)).try_acquire().await;
        assert!(refused.is_err(), "{refused:?}");
        let error = guard.release().await.unwrap_err();
        assert!(
            matches!(
                error,
                ReleaseError::Lost(LeaseLost { reason: LossReason::WatchdogStopped, .. })
            ),
            "{error}"
        );
    });
}

#[tokio::test]
async fn a_panic_of_the_watchdog_loses_every_lease() {
    let clock = BrokenClock::default();
    let shown = clock.clone();
    let world = World::on_clock(&clock.manual, move |_| Arc::new(shown.clone()));
    let locks = world.runtime(1);
    let guards = [
        locks.lock(NAME).unwrap().acquire().await.unwrap(),
        locks.lock("orders/43").unwrap().acquire().renew(false).await.unwrap(),
    ];
    world.settle().await;
    clock.broken.store(true, Ordering::Relaxed);
    // The first renewal, after at most a third of the ttl: the watchdog wakes, and panics.
    clock.manual.travel(millis(3_400)).await;
    clock.broken.store(false, Ordering::Relaxed);
    for guard in guards {
        assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::WatchdogStopped));
    }
}

#[tokio::test]
async fn a_forced_release_is_told_at_once() {
    let world = World::new();
    let (locks, admin) = (world.runtime(1), world.another_line().runtime(2));
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    let lost = tokio::spawn(guard.lost());
    world.settle().await;
    admin.force_release(NAME).await.unwrap();
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::ForceReleased));
    world.settle().await;
    assert_eq!(lost.await.unwrap(), LeaseEnd::Lost(LossReason::ForceReleased));
    world.pass(secs(30)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), 0, "a lost lease is not renewed");
}

/// A task of the turn is offered the lock, and has not taken it: it does not take it any more.
#[tokio::test]
async fn a_forced_release_ends_an_open_offer_too() {
    for from_queue in [false, true] {
        let world = World::new();
        let (locks, admin) = (world.runtime(1), world.another_line().runtime(2));
        warm_up(&world, &locks).await;
        let holder = lock(if from_queue { &admin } else { &locks }).acquire().await.unwrap();
        let mut offered = Box::pin(lock(&locks).acquire().wait_forever());
        for _ in 0..3 {
            assert!(poll_once(offered.as_mut()).is_pending());
            world.settle().await;
        }
        world.pass(millis(1)).await;
        holder.release().await.unwrap();
        assert_eq!(world.holder(NAME).await.unwrap().id.runtime(), locks.id());
        admin.force_release(NAME).await.unwrap();
        let theirs = lock(&admin).acquire().await.unwrap();
        for _ in 0..10 {
            assert!(poll_once(offered.as_mut()).is_pending(), "from the queue: {from_queue}");
            assert!(theirs.is_held());
            world.pass(secs(1)).await;
        }
        theirs.release().await.unwrap();
        world.settle().await;
        let Poll::Ready(guard) = poll_once(offered.as_mut()) else { panic!("it is free") };
        assert!(guard.unwrap().is_held());
    }
}

/// A late copy of the message, or one about a lease that is over, ends nothing.
#[tokio::test]
async fn an_old_message_of_a_forced_release_ends_no_other_lease() {
    let world = World::new();
    let (locks, admin) = (world.runtime(1), world.another_line().runtime(2));
    let lock = locks.lock(NAME).unwrap();
    let first = lock.acquire().await.unwrap();
    world.store.inject_push(PushRule::new(PushFault::Delay));
    admin.force_release(NAME).await.unwrap();
    assert!(first.is_held(), "it does not know yet");
    drop(first);
    let second = lock.acquire().await.unwrap();
    assert_eq!(world.store.deliver_pushes(), 1);
    world.pass(secs(30)).await;
    assert!(second.is_held());
}

/// The message is lost: a renewal finds out.
#[tokio::test]
async fn a_forced_release_is_learnt_at_the_next_renewal() {
    let world = World::new();
    let (locks, admin) = (world.runtime(1), world.another_line().runtime(2));
    world.store.inject_push(PushRule::new(PushFault::Lose));
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    let lost = tokio::spawn(guard.lost());
    world.settle().await;
    admin.force_release(NAME).await.unwrap();
    assert!(guard.is_held(), "until then it does not know");
    while world.store.executed(CommandKind::Renew) == 0 {
        assert!(!lost.is_finished());
        world.pass(millis(1)).await;
    }
    assert_eq!(lost.await.unwrap(), LeaseEnd::Lost(LossReason::Gone));
    assert!(world.clock().now() <= ManualClock::START + secs(10) / 3 + millis(1));
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::Gone));
    world.pass(secs(30)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), 1, "a lost lease is not renewed");
}

#[tokio::test]
async fn a_store_that_lost_its_data_is_a_loss_at_the_next_renewal() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    world.memory().clear();
    world.pass(millis(3_334)).await;
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::DataLost));
    // The lock is free, and the fence grows all the same.
    let next = locks.lock(NAME).unwrap().acquire().await.unwrap();
    assert!(next.fence() > guard.fence());
}

/// What failed is a cause until a renewal is confirmed, and after the loss.
#[tokio::test]
async fn a_lease_knows_why_its_last_renewal_failed() {
    let world = World::new();
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    assert_eq!(guard.renewal_error(), None);
    let fails = || Rule::new(Fault::Fail(config())).on(CommandKind::Renew);
    world.store.inject(fails().always());
    world.pass(millis(3_334)).await;
    assert_eq!(guard.renewal_error(), Some(config()));
    world.store.heal();
    world.pass(millis(3_334)).await;
    assert!(guard.is_held() && guard.renewal_error().is_none());
    world.store.inject(fails().always());
    world.pass(secs(20)).await;
    assert_eq!(guard.state(), LeaseState::Lost(LossReason::Expired));
    assert_eq!(guard.renewal_error(), Some(config()));
}

/// `MaxHold` with the store out of reach: told in time here, and on the server by the ttl.
#[tokio::test]
async fn max_hold_is_told_without_the_server() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().max_hold(secs(5)).await.unwrap();
    world.store.inject(Rule::new(Fault::Fail(config())).always());
    world.pass(secs(5)).await;
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::MaxHold));
    world.pass(secs(10)).await;
    assert!(world.holder(NAME).await.is_none());
}

/// The holder need not wait for a renewal to learn what its own process did.
#[tokio::test]
async fn a_runtime_that_ends_its_own_lease_tells_the_holder_at_once() {
    let locks = leasehold::LockRuntime::embedded().unwrap();
    let guard = locks.lock("one").unwrap().acquire().await.unwrap();
    let _ = locks.force_release("one").await.unwrap();
    assert!(!guard.is_held());
}
