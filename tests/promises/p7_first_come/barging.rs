use leasehold::LockRuntime;
use leasehold_testkit::{
    CommandKind, Fault, Gate, Rule,
    faulty::{PushFault, PushRule},
};

use crate::support::{Waiting, World, lock, millis, poll_once, secs, warm_up};

/// Neither a try nor an acquire of somebody gets the lock now.
async fn nobody_barges(world: &World, locks: &LockRuntime) -> Waiting {
    assert!(lock(locks).try_acquire().await.unwrap().is_none());
    let waiting = Waiting::on(lock(locks).acquire());
    world.settle().await;
    assert!(!waiting.is_over());
    waiting
}

/// A waiter has the lock and does not know yet: its message is on its way.
#[tokio::test]
async fn nobody_barges_past_a_waiter_that_was_granted_the_lock() {
    let world = World::new();
    let (holds, waits) = (world.runtime(1), world.runtime(2));
    let comes = world.another_line().runtime(3);
    let guard = lock(&holds).acquire().await.unwrap();
    let first = Waiting::queued(&world, &waits).await;
    world.store.inject_push(PushRule::new(PushFault::Delay).to(waits.id()));
    guard.release().await.unwrap();
    world.settle().await;
    assert!(!first.is_over());
    let late = nobody_barges(&world, &comes).await;
    // Nor does who has just released it.
    let again = nobody_barges(&world, &holds).await;
    world.store.deliver_pushes();
    first.taken(&world).await.release().await.unwrap();
    late.taken(&world).await.release().await.unwrap();
    again.taken(&world).await.release().await.unwrap();
}

/// A lease that ran out is granted to the head of the queue, no matter who asks first.
#[tokio::test]
async fn nobody_barges_when_a_lease_runs_out() {
    for tries in [true, false] {
        let world = World::new();
        let (holds, waits) = (world.runtime(1), world.runtime(2));
        let comes = world.another_line().runtime(3);
        let _gone = lock(&holds).acquire().renew(false).await.unwrap();
        let mut first = Box::pin(lock(&waits).acquire());
        while world.now().saturating_since(leasehold_testkit::ManualClock::START) < secs(9) {
            assert!(poll_once(first.as_mut()).is_pending());
            world.pass(millis(100)).await;
        }
        // Just when it runs out, before the waiter's own timer: who comes finds it free.
        world.clock().advance(secs(1));
        assert!(world.holder(World::NAME).await.is_none());
        let late = if tries {
            assert!(lock(&comes).try_acquire().await.unwrap().is_none());
            None
        } else {
            Some(Waiting::queued(&world, &comes).await)
        };
        let served = world.holder(World::NAME).await.unwrap();
        assert_eq!(served.id.runtime(), waits.id());
        let std::task::Poll::Ready(Ok(guard)) = poll_once(first.as_mut()) else {
            panic!("it was told at once")
        };
        guard.release().await.unwrap();
        if let Some(late) = late {
            late.taken(&world).await.release().await.unwrap();
        }
    }
}

/// In the runtime itself: past those who wait here, past an open offer, and past its own place.
#[tokio::test]
async fn nobody_barges_past_tasks_of_the_same_runtime() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().await.unwrap();
    let mut first = Box::pin(lock(&locks).acquire());
    assert!(poll_once(first.as_mut()).is_pending());
    guard.release().await.unwrap();
    // The first is offered the lock, and has not looked yet.
    let second = nobody_barges(&world, &locks).await;
    let std::task::Poll::Ready(Ok(guard)) = poll_once(first.as_mut()) else { panic!("its turn") };
    guard.release().await.unwrap();
    let guard = second.taken(&world).await;
    let theirs = Waiting::queued(&world, &other).await;
    guard.release().await.unwrap();
    let guard = theirs.taken(&world).await;
    // The runtime has a place of its own, and the lock is free for nobody else.
    let third = Waiting::queued(&world, &locks).await;
    world.store.clear_log();
    assert!(lock(&locks).try_acquire().await.unwrap().is_none());
    assert_eq!(world.store.sent(CommandKind::Acquire), 0, "that is known without asking");
    guard.release().await.unwrap();
    third.taken(&world).await.release().await.unwrap();
}

/// A try that is on its way does not let those wait in vain who came after it.
#[tokio::test]
async fn a_try_asks_for_those_behind_it() {
    for taken in [true, false] {
        let world = World::new();
        let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
        warm_up(&world, &other).await;
        let guard = lock(&other).acquire().await.unwrap();
        if !taken {
            guard.release().await.unwrap();
        }
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Acquire));
        let tries = lock(&locks);
        let tries = tokio::spawn(async move { tries.try_acquire().await.unwrap() });
        gate.wait_for_arrivals(1).await;
        let waits = Waiting::queued(&world, &locks).await;
        gate.open();
        world.settle().await;
        if let Some(guard) = tries.await.unwrap() {
            assert!(!taken);
            guard.release().await.unwrap();
        } else {
            assert!(taken);
            let held = world.holder(World::NAME).await.unwrap();
            assert_eq!(held.waiters.len(), 1, "the one behind it stands in the queue");
            other.force_release(World::NAME).await.unwrap();
        }
        waits.taken(&world).await.release().await.unwrap();
    }
}
