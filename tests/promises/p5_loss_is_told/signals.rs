use std::pin::pin;
use std::sync::Arc;

use leasehold::{
    Guard, LeaseEnd, LeaseState, LossReason, Lost, Released,
    error::{LeaseLost, ReenterError, ReleaseError},
};
use leasehold_testkit::{CommandKind, Fault, ManualClock, Rule};

use crate::support::{
    TimerlessClock, World, definite, just_before, millis, nanos, on_every_store, poll_once, secs,
};

const NAME: &str = World::NAME;
const EXPIRED: LeaseState = LeaseState::Lost(LossReason::Expired);

/// A lease of 10 s in a world where no renewal succeeds.
async fn unrenewable() -> (World, Guard) {
    let world = World::new();
    world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Renew).always());
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    (world, guard)
}

#[tokio::test]
async fn lost_resolves_at_the_deadline_before_the_servers_lease_ends() {
    let (world, guard) = unrenewable().await;
    let lost = tokio::spawn(guard.lost());
    let token = guard.cancellation();
    world.pass(just_before(millis(9_900))).await;
    assert!(!lost.is_finished() && !token.is_cancelled() && guard.is_held());
    world.pass(nanos(1)).await;
    assert!(lost.is_finished() && token.is_cancelled());
    assert_eq!(lost.await.unwrap(), LeaseEnd::Lost(LossReason::Expired));
    // Nobody else can have it yet: the margin is left.
    assert_eq!(world.holder(NAME).await.unwrap().remaining, millis(100));
    assert!(world.store.sent(CommandKind::Renew) >= 3, "several attempts fit before the deadline");
}

/// The control: a signal that came with the server's own end of the lease would come too late.
#[tokio::test]
async fn the_signal_comes_before_another_holder_can() {
    let (world, guard) = unrenewable().await;
    let other = world.another_line().runtime(2);
    let (clock, lost) = (world.clock().clone(), guard.lost());
    let told = tokio::spawn(async move {
        lost.await;
        leasehold::time::Clock::now(&clock)
    });
    let clock = world.clock().clone();
    let taken = tokio::spawn(async move {
        let next = other.lock(NAME).unwrap().acquire().await.unwrap();
        (leasehold::time::Clock::now(&clock), next.fence())
    });
    world.pass(secs(11)).await;
    let (told, (taken, fence)) = (told.await.unwrap(), taken.await.unwrap());
    assert_eq!(told, ManualClock::START + millis(9_900));
    assert!(taken >= ManualClock::START + secs(10) && told < taken);
    assert!(fence > guard.fence());
}

/// The process was paused: its clock has moved on, and none of its tasks has run since.
#[tokio::test]
async fn after_a_pause_every_look_says_lost_first() {
    let looks: [fn(&Guard) -> bool; 6] = [
        |guard| !guard.is_held(),
        |guard| guard.remaining().is_zero(),
        |guard| guard.lease().state() == EXPIRED,
        |guard| !guard.lease().is_held(),
        |guard| guard.cancellation().is_cancelled(),
        |guard| poll_once(pin!(guard.lost())).is_ready(),
    ];
    for look in looks {
        let world = World::new();
        let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
        world.settle().await;
        assert!(!look(&guard));
        world.clock().advance(millis(9_900));
        assert!(look(&guard));
    }
}

#[tokio::test]
async fn after_a_pause_no_command_goes_out_before_the_loss_is_told() {
    let world = World::new();
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    world.clock().advance(millis(9_900));
    let error = guard.reenter().await.unwrap_err();
    assert!(
        matches!(error, ReenterError::Lost(LeaseLost { reason: LossReason::Expired, .. })),
        "{error}"
    );
    world.settle().await;
    assert_eq!(world.store.sent(CommandKind::Hold), 0);
    assert_eq!(world.store.sent(CommandKind::Renew), 0);
    let error = guard.release().await.unwrap_err();
    assert!(
        matches!(error, ReleaseError::Lost(LeaseLost { reason: LossReason::Expired, .. })),
        "{error}"
    );
}

/// A token that was asked for before the pause is cancelled by the first task that looks.
#[tokio::test]
async fn one_look_tells_all_who_watch() {
    let world = World::new();
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    let token = guard.cancellation();
    world.clock().advance(millis(9_900));
    assert!(!token.is_cancelled(), "nobody has looked yet");
    assert!(!guard.lease().is_held());
    assert!(token.is_cancelled());
}

/// Timers may come round late after a pause; a poll of `lost()` looks at the clock itself.
#[tokio::test]
async fn lost_needs_no_timer_to_fire() {
    let manual = ManualClock::new();
    let world = World::on_clock(&manual, |manual| Arc::new(TimerlessClock(manual)));
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    let mut lost = pin!(guard.lost());
    assert!(poll_once(lost.as_mut()).is_pending());
    manual.advance(just_before(millis(9_900)));
    assert!(poll_once(lost.as_mut()).is_pending());
    manual.advance(nanos(1));
    assert!(poll_once(lost.as_mut()).is_ready());
    // A loop around `select!` polls it on.
    assert!(poll_once(lost.as_mut()).is_pending(), "a loss is told once");
}

#[tokio::test]
async fn lost_never_turns_back_into_held() {
    let world = World::new();
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    // A renewal is on its way while belief ends, and is answered with a full ttl.
    let gate = leasehold_testkit::Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Renew));
    while gate.arrived() == 0 {
        world.pass(millis(10)).await;
    }
    world.clock().advance(millis(9_900));
    assert_eq!(guard.lease().state(), EXPIRED);
    gate.open();
    world.settle().await;
    assert_eq!(guard.lease().state(), EXPIRED);
    world.pass(secs(1)).await;
    assert_eq!(guard.lease().state(), EXPIRED);
    assert!(!guard.is_held());
}

/// The control: a renewal that is answered before the end of belief keeps the lease.
#[tokio::test]
async fn a_renewal_in_time_keeps_the_lease() {
    let world = World::new();
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    world.pass(secs(100)).await;
    assert!(guard.is_held());
}

on_every_store! {
    async fn lost_is_owned_and_tells_a_release_apart(world: World) {
        fn owned(lost: Lost) -> impl Future<Output = LeaseEnd> + Send + 'static {
            lost
        }
        let locks = world.runtime(1);
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let (before, token, lease) = (owned(guard.lost()), guard.cancellation(), guard.lease());
        assert!(!token.is_cancelled());
        assert_eq!(guard.release().await.unwrap(), Released::Ended);
        assert_eq!(lease.state(), LeaseState::Released);
        assert_eq!(before.await, LeaseEnd::Released);
        assert_eq!(lease.lost().await, LeaseEnd::Released);
        assert!(token.is_cancelled() && lease.cancellation().is_cancelled());
        assert!(lease.remaining().is_zero());
    }

    async fn lost_wakes_a_task_that_waits_when_the_guard_is_dropped(world: World) {
        let locks = world.runtime(1);
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let watching = tokio::spawn(guard.lost());
        tokio::task::yield_now().await;
        drop(guard);
        assert_eq!(watching.await.unwrap(), LeaseEnd::Released);
    }

    async fn a_release_of_an_inner_hold_is_no_end(world: World) {
        let locks = world.runtime(1);
        let outer = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let inner = outer.reenter().await.unwrap();
        let mut lost = pin!(inner.lost());
        inner.release().await.unwrap();
        assert!(poll_once(lost.as_mut()).is_pending());
        outer.release().await.unwrap();
        assert_eq!(lost.await, LeaseEnd::Released);
    }
}
