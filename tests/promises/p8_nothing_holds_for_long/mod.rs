//! P8, a dead holder frees in at most the ttl from its last executed renewal, a dead waiter delays
//! by at most the claim window, a lost wake-up by at most one heartbeat, and a future that nobody
//! polls by at most the claim window.

mod coming_back;
mod dead_waiter;
mod gaps;
mod late_heartbeat;
mod long_outage;
mod lost_push;
mod stale_push;
mod unpolled;

use std::task::Poll;

use leasehold::{LeaseState, LossReason, time::Clock};
use leasehold_testkit::{CommandKind, Fault, Gate, ManualClock, Rule};

use crate::support::{Process, World, just_before, millis, nanos, poll_once, secs, step};

const NAME: &str = World::NAME;

/// A process dies somewhere in the life of its lease; another gets the lock in time.
#[test]
fn a_dead_holder_frees_within_the_ttl_of_its_last_executed_renewal() {
    for dies_after in [0, 1, 3_000, 3_400, 10_000, 25_000, 61_234] {
        let world = World::new();
        let processes = [Process::new(), Process::new()];
        let locks = processes[0].within(|| world.runtime(1));
        let holder = processes[0].spawn(async move {
            let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
            let fence = guard.fence();
            // Kept until the process is dropped.
            (guard, fence)
        });
        let dies_at = ManualClock::START + millis(dies_after);
        while world.clock().now() < dies_at || !holder.is_finished() {
            processes[0].run(world.clock().now());
            let left = dies_at.saturating_since(world.clock().now());
            step(world.clock(), &processes[..1], left);
            processes[0].run(world.clock().now());
        }
        let [dead, alive] = processes;
        let end = {
            let observer = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let record = observer.block_on(world.holder(NAME)).expect("it is held at its death");
            world.clock().now() + record.remaining
        };
        assert!(end <= world.clock().now() + secs(10));
        // As SIGKILL: nothing of it runs again, not even destructors.
        std::mem::forget((dead, holder));
        let others = alive.within(|| world.another_line().runtime(2));
        let clock = world.clock().clone();
        let next = alive.spawn(async move {
            let guard = others.lock(NAME).unwrap().acquire().await.unwrap();
            assert!(guard.is_held());
            clock.now()
        });
        let dead_since = world.clock().now();
        while !next.is_finished() {
            alive.run(world.clock().now());
            step(world.clock(), std::slice::from_ref(&alive), secs(1));
        }
        let observer = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let taken_at = observer.block_on(next).unwrap();
        // Redis and the waiter both count whole milliseconds.
        assert!(taken_at >= end && taken_at <= end + millis(2), "{taken_at:?}, not {end:?}");
        assert!(taken_at.saturating_since(dead_since) <= secs(10) + millis(2));
    }
}

/// The command was sent, and its answer is never looked at.
#[tokio::test]
async fn an_acquire_that_nobody_polls_holds_for_the_claim_window_at_most() {
    let cases = [
        (secs(10), secs(3)), // The default claim window.
        (secs(1), secs(1)),  // Never longer than the ttl.
    ];
    for (ttl, window) in cases {
        let world = World::new();
        let locks = world.runtime(1);
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Acquire));
        let lock = locks.lock(NAME).unwrap();
        let mut acquire = Box::pin(lock.acquire().ttl(ttl));
        assert!(poll_once(acquire.as_mut()).is_pending());
        gate.open();
        let late = world.holder(NAME).await.unwrap();
        world.pass(just_before(window)).await;
        // A lease of 1 s is gone by itself at the same moment.
        assert_eq!(world.holder(NAME).await.unwrap().id, late.id);
        world.pass(nanos(1)).await;
        assert!(world.holder(NAME).await.is_none());
        assert_eq!(world.store.sent(CommandKind::Renew), 0, "what nobody took is not renewed");
        // Somebody else gets it, and the old grant is not believed when it is looked at.
        let other = world.another_line().runtime(2);
        let theirs = other.lock(NAME).unwrap().acquire().await.unwrap();
        assert!(poll_once(acquire.as_mut()).is_pending());
        assert!(theirs.is_held());
        theirs.release().await.unwrap();
        let Poll::Ready(guard) = ({
            world.pass(millis(5)).await;
            poll_once(acquire.as_mut())
        }) else {
            panic!("the lock is free");
        };
        let guard = guard.unwrap();
        assert!(guard.id() != late.id && guard.fence() > late.fence);
        assert!(guard.is_held());
    }
}

/// The setting counts; and the control: a future that is polled in time keeps its grant.
#[tokio::test]
async fn the_claim_window_can_be_set() {
    for polled_in_time in [true, false] {
        let world = World::new();
        let locks = world.start(world.builder(1).claim_window(millis(500)));
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Acquire));
        let lock = locks.lock(NAME).unwrap();
        let mut acquire = Box::pin(lock.acquire());
        assert!(poll_once(acquire.as_mut()).is_pending());
        gate.open();
        let late = world.holder(NAME).await.unwrap();
        world.pass(just_before(millis(500))).await;
        if polled_in_time {
            let Poll::Ready(Ok(guard)) = poll_once(acquire.as_mut()) else { panic!("granted") };
            world.pass(secs(60)).await;
            assert!(guard.is_held() && guard.id() == late.id);
        } else {
            world.pass(nanos(1)).await;
            assert!(world.holder(NAME).await.is_none());
        }
    }
}

/// A request that arrives after its future was given up does not come back as a grant.
#[tokio::test]
async fn an_unpolled_acquire_whose_request_is_slow_is_never_granted() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Delay(Gate::new())).on(CommandKind::Acquire));
    let lock = locks.lock(NAME).unwrap();
    let mut acquire = Box::pin(lock.acquire());
    assert!(poll_once(acquire.as_mut()).is_pending());
    world.pass(secs(3)).await;
    drop(acquire);
    assert_eq!(world.store.deliver_late().await.len(), 1);
    assert!(world.holder(NAME).await.is_none());
}

/// A guard inside of a future that nobody polls is held: that is what `max_hold` is for.
#[tokio::test]
async fn a_guard_in_an_unpolled_future_is_bounded_by_max_hold() {
    let world = World::new();
    let locks = world.runtime(1);
    let lock = locks.lock(NAME).unwrap();
    let mut work = Box::pin(async {
        let guard = lock.acquire().max_hold(secs(20)).await.unwrap();
        tokio::task::yield_now().await;
        guard.lease().state()
    });
    assert!(poll_once(work.as_mut()).is_pending());
    world.pass(just_before(secs(20))).await;
    assert!(world.holder(NAME).await.is_some(), "it is renewed, as any guard is");
    world.pass(nanos(1)).await;
    assert!(world.holder(NAME).await.is_none());
    assert_eq!(work.await, LeaseState::Lost(LossReason::MaxHold));
}

#[tokio::test]
async fn a_lease_is_renewed_for_as_long_as_its_guard_lives() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    for _ in 0..1_000 {
        world.pass(secs(10)).await;
        // Belief never runs low, and never beyond the server's lease.
        let (believed, left) = (guard.remaining(), world.holder(NAME).await.unwrap().remaining);
        assert!(believed > secs(6) && believed < left, "{believed:?} of {left:?}");
    }
    let renewals = world.store.sent(CommandKind::Renew);
    assert!((3_000..3_400).contains(&renewals), "{renewals} renewals for 1,000 ttls");
    drop(guard);
    world.pass(millis(1)).await;
    assert!(world.holder(NAME).await.is_none());
    world.pass(secs(100)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), renewals);
}

/// On a clock that moves with every look, as real ones do, the first command has its full time.
#[tokio::test]
async fn the_first_command_of_a_short_wait_has_its_full_time() {
    let manual = ManualClock::new();
    let ticking = |manual| std::sync::Arc::new(crate::support::TickingClock(manual));
    let world = World::on_clock(&manual, ticking);
    let locks = world.runtime(1);
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Acquire));
    let lock = locks.lock(NAME).unwrap();
    let (guard, ()) = tokio::join!(biased; lock.try_acquire(), async {
        gate.wait_for_arrivals(1).await;
        manual.travel(millis(1_500)).await;
        gate.open();
    });
    assert!(guard.unwrap().unwrap().is_held());
}
