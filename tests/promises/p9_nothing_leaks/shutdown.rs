use std::task::Poll;

use leasehold::{
    LeaseEnd, LeaseState, LossReason,
    error::{AcquireError, LeaseLost, ReleaseError},
};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{
    World, at_most_polls, config, definite, millis, on_every_store, poll_once, secs,
};

const NAME: &str = World::NAME;

on_every_store! {
    async fn shutdown_releases_what_is_held(world: World) {
        let locks = world.runtime(1);
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let inner = guard.reenter().await.unwrap();
        let other = locks.lock("orders/43").unwrap().acquire().await.unwrap();
        let released = locks.lock("orders/44").unwrap().acquire().await.unwrap();
        released.release().await.unwrap();
        let lost = guard.lost();
        let report = locks.shutdown(secs(5)).await;
        assert_eq!((report.held, report.unreleased), (2, vec![]));
        assert_eq!(lost.await, LeaseEnd::Lost(LossReason::Shutdown));
        assert_eq!(other.lease().state(), LeaseState::Lost(LossReason::Shutdown));
        for name in [NAME, "orders/43"] {
            assert!(world.holder(name).await.is_none());
        }
        let error = inner.release().await.unwrap_err();
        let shutdown = LossReason::Shutdown;
        assert!(matches!(error, ReleaseError::Lost(LeaseLost { reason, .. }) if reason == shutdown));
        // A second call finds nothing to do.
        let report = locks.shutdown(secs(5)).await;
        assert_eq!((report.held, report.unreleased), (0, vec![]));
    }

    async fn shutdown_refuses_new_acquires(world: World) {
        let locks = world.runtime(1);
        let _ = locks.shutdown(secs(5)).await;
        world.store.clear_log();
        let lock = locks.lock(NAME).unwrap();
        for error in [lock.acquire().await.unwrap_err(), lock.try_acquire().await.unwrap_err()] {
            assert!(matches!(&error, AcquireError::ShutDown { lock, .. } if lock.as_str() == NAME));
        }
        assert_eq!(world.store.sent(CommandKind::Acquire), 0);
        // Looking still works, and so does another runtime.
        assert!(locks.inspect(NAME).await.is_ok());
        assert!(world.runtime(2).lock(NAME).unwrap().try_acquire().await.unwrap().is_some());
    }

    async fn shutdown_ends_the_waits(world: World) {
        let (holder, locks) = (world.another_line().runtime(1), world.runtime(2));
        let guard = holder.lock(NAME).unwrap().acquire().await.unwrap();
        let lock = locks.lock(NAME).unwrap();
        let waiting = tokio::spawn(lock.acquire().wait_forever());
        let store = world.store.clone();
        world.until("it waits", async || store.executed(CommandKind::Acquire) > 0).await;
        let _ = locks.shutdown(secs(5)).await;
        world.until("the wait is over", async || waiting.is_finished()).await;
        assert!(matches!(waiting.await.unwrap(), Err(AcquireError::ShutDown { .. })));
        assert!(guard.is_held());
        assert_eq!(world.holder(NAME).await.unwrap().id, guard.id());
    }

    async fn shutdown_waits_for_dropped_guards(world: World) {
        let locks = world.runtime(1);
        for n in 0..200 {
            drop(locks.lock(format!("n{n}")).unwrap().acquire().await.unwrap());
        }
        let report = locks.shutdown(secs(20)).await;
        assert_eq!((report.held, report.unreleased), (0, vec![]));
        for n in 0..200 {
            assert!(world.holder(&format!("n{n}")).await.is_none());
        }
    }

    /// Its command is on the way when the shutdown comes: it gets nothing, and leaves nothing.
    async fn an_acquire_on_its_way_gets_nothing_after_a_shutdown(world: World) {
        let locks = world.runtime(1);
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Acquire));
        let acquiring = tokio::spawn(locks.lock(NAME).unwrap().acquire());
        gate.wait_for_arrivals(1).await;
        let report = locks.shutdown(secs(5)).await;
        assert_eq!((report.held, report.unreleased), (0, vec![]));
        assert!(world.holder(NAME).await.is_none(), "withdrawn before the shutdown was done");
        gate.open();
        assert!(matches!(acquiring.await.unwrap(), Err(AcquireError::ShutDown { .. })));
        assert!(world.holder(NAME).await.is_none());
    }
}

#[tokio::test]
async fn shutdown_reports_what_it_could_not_release() {
    for fault in [Fault::Fail(definite()), Fault::Fail(config()), Fault::LoseRequest] {
        let world = World::new();
        let locks = world.runtime(1);
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let dropped = locks.lock("orders/43").unwrap().acquire().await.unwrap();
        let fine = locks.lock("orders/44").unwrap().acquire().await.unwrap();
        for lock in [guard.name(), dropped.name()] {
            world
                .store
                .inject(Rule::new(fault.clone()).on(CommandKind::Release).lock(lock).always());
        }
        let started = world.now();
        let (report, ()) = tokio::join!(biased; async {
            let shutdown = locks.shutdown(secs(5));
            drop(dropped);
            shutdown.await
        }, world.pass(secs(5)));
        // A dropped guard gave up its lease before the shutdown began.
        assert_eq!(report.held, 2, "{fault:?}");
        let unreleased: Vec<_> = report.unreleased.iter().map(ToString::to_string).collect();
        assert_eq!(unreleased, [NAME, "orders/43"], "{fault:?}");
        assert!(world.now().saturating_since(started) <= secs(5));
        assert!(!guard.is_held() && !fine.is_held());
        assert!(world.holder("orders/44").await.is_none());
        // By the ttl they are free all the same.
        world.pass(secs(10)).await;
        assert!(world.holder(NAME).await.is_none() && world.holder("orders/43").await.is_none());
    }
}

/// A turn that ends as the shutdown comes: its release is on the way, and not confirmed yet.
#[tokio::test]
async fn shutdown_waits_for_the_end_of_a_turn() {
    for offered in [true, false] {
        let world = World::new();
        let locks = world.runtime(1);
        let lock = locks.lock(NAME).unwrap();
        lock.acquire().await.unwrap().release().await.unwrap();
        world.pass(millis(20)).await;
        let guard = lock.acquire().await.unwrap();
        let mut next = Box::pin(lock.acquire());
        assert!(poll_once(next.as_mut()).is_pending());
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Release));
        // Its time is over, and the runtime queues anew; or the next task is offered the lock.
        world.pass(if offered { millis(1) } else { millis(10) }).await;
        guard.release().await.unwrap();
        world.settle().await;
        assert_eq!(gate.arrived(), usize::from(!offered));
        let unreleased = |report: leasehold::ShutdownReport| report.unreleased.len();
        let early = async { unreleased(locks.shutdown(millis(100)).await) };
        let (early, ()) = tokio::join!(biased; early, world.pass(millis(100)));
        assert_eq!((early, gate.arrived()), (1, 1), "offered: {offered}");
        gate.open();
        assert_eq!(unreleased(locks.shutdown(secs(1)).await), 0, "offered: {offered}");
        assert!(world.holder(NAME).await.is_none(), "offered: {offered}");
        let ended = poll_once(next.as_mut());
        assert!(matches!(ended, Poll::Ready(Err(AcquireError::ShutDown { .. }))), "{ended:?}");
    }
}

#[tokio::test]
async fn shutdown_takes_no_longer_than_its_time_and_can_be_called_again() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).times(1));
    let (report, ()) = tokio::join!(biased; locks.shutdown(millis(100)), world.pass(millis(100)));
    assert_eq!((report.held, report.unreleased), (1, vec![guard.name().clone()]));
    // The reaper goes on: the next call waits for the rest.
    let (report, ()) = tokio::join!(biased; locks.shutdown(secs(5)), world.pass(secs(5)));
    assert_eq!((report.held, report.unreleased), (0, vec![]));
    assert!(world.holder(NAME).await.is_none());
}

/// Withdrawals go on for as long as an outage lasts, and no lock stays closed for them.
#[tokio::test]
async fn a_shutdown_in_an_outage_waits_for_withdrawals_for_one_command_timeout() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    let acquiring = locks.lock(NAME).unwrap().acquire().wait(secs(1));
    let (asked, ()) = tokio::join!(biased; acquiring, world.pass(secs(2)));
    let error = asked.unwrap_err();
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    let draining = async { (locks.drain(secs(60)).await, world.now()) };
    let started = world.now();
    let ((report, ended), ()) = tokio::join!(biased; draining, world.pass(secs(70)));
    assert_eq!((report.held, report.unreleased), (0, vec![]));
    let took = ended.saturating_since(started);
    assert!(took <= secs(3), "it took {took:?}");
}

/// A shutdown that is dropped goes on in the background.
#[tokio::test]
async fn a_cancelled_shutdown_stays_under_way() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    assert!(at_most_polls(1, locks.shutdown(secs(5))).await.is_none());
    assert!(!guard.is_held());
    world.settle().await;
    assert!(world.holder(NAME).await.is_none());
}
