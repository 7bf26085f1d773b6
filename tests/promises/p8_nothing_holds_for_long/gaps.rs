//! A subscription returns while a command of the waiter is under way: it asks again all the same,
//! whether or not that command is answered.

use leasehold_testkit::{
    CommandKind, Fault, Gate, Rule,
    faulty::{PushFault, PushRule},
};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

/// The longest time from the end of a gap to the next question, with the steps of the test.
const SOON: std::time::Duration = millis(51);

/// The place is granted, its message is lost, and the answer to the command under way is "not yet",
/// which is older than that, or does not come at all.
async fn asks_after_a_gap(world: World, kind: CommandKind, is_answered: bool) {
    let holds = world.another_line().runtime(1);
    let waits = world.runtime(2);
    let guard = lock(&holds).acquire().await.unwrap();
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(kind));
    let waiting = Waiting::queued(&world, &waits).await;
    while gate.arrived() == 0 {
        world.pass(millis(1)).await;
    }
    world.store.inject_push(PushRule::new(PushFault::Lose));
    guard.release().await.unwrap();
    world.store.reconnect();
    world.settle().await;
    if is_answered {
        gate.open();
    }
    let (_guard, waited) = waiting.taken_within(&world, secs(2)).await;
    assert!(waited <= SOON, "{kind:?}, answered: {is_answered}: {waited:?}");
}

#[tokio::test]
async fn a_waiter_that_has_a_heartbeat_under_way_asks_again() {
    for is_answered in [true, false] {
        asks_after_a_gap(World::new(), CommandKind::Heartbeat, is_answered).await;
    }
}

/// As in the first milliseconds of a process, before it can hear the server.
#[tokio::test]
async fn a_waiter_that_asks_for_the_first_time_asks_again() {
    for is_answered in [true, false] {
        asks_after_a_gap(World::new(), CommandKind::Acquire, is_answered).await;
    }
}

/// A release queues its process anew; the lock comes back to it before the release is answered.
#[tokio::test]
async fn a_waiter_that_queues_anew_asks_again() {
    for is_answered in [true, false] {
        let world = World::new();
        let (holds, other) = (world.runtime(1), world.another_line().runtime(2));
        warm_up(&world, &holds).await;
        let guard = lock(&holds).acquire().await.unwrap();
        let theirs = Waiting::queued(&world, &other).await;
        let again = Waiting::queued(&world, &holds).await;
        world.pass(millis(10)).await;
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Release));
        guard.release().await.unwrap();
        world.store.inject_push(PushRule::new(PushFault::Lose).to(holds.id()));
        theirs.taken(&world).await.release().await.unwrap();
        world.store.reconnect();
        world.settle().await;
        if is_answered {
            gate.open();
        }
        let (_guard, waited) = again.taken_within(&world, secs(2)).await;
        assert!(waited <= SOON, "answered: {is_answered}: {waited:?}");
    }
}

/// The release that queues its process anew fails now and then: the pause before the next copy of
/// it ends with the gap.
#[tokio::test]
async fn a_waiter_that_queues_anew_and_pauses_asks_again() {
    for failures in [4, 6, 8, 10] {
        let world = World::new();
        let (holds, other) = (world.runtime(1), world.another_line().runtime(2));
        warm_up(&world, &holds).await;
        let guard = lock(&holds).acquire().await.unwrap();
        let theirs = Waiting::queued(&world, &other).await;
        let again = Waiting::queued(&world, &holds).await;
        world.pass(millis(10)).await;
        let lost = Rule::new(Fault::BreakReply).on(CommandKind::Release).times(failures);
        world.store.inject(lost);
        let sent = world.store.sent(CommandKind::Release);
        guard.release().await.unwrap();
        world.store.inject_push(PushRule::new(PushFault::Lose).to(holds.id()));
        let theirs = theirs.taken(&world).await;
        while world.store.sent(CommandKind::Release) < sent + usize::try_from(failures).unwrap() {
            world.pass(millis(1)).await;
        }
        theirs.release().await.unwrap();
        world.store.reconnect();
        let (_guard, waited) = again.taken_within(&world, secs(2)).await;
        assert!(waited <= SOON, "{failures} failures: {waited:?}");
    }
}

/// Names that wait together are asked for in rounds: the pause between two rounds is part of the
/// time.
#[tokio::test]
async fn everybody_who_waits_asks_again_in_time() {
    for seed in 0..40 {
        let world = World::new();
        let (holds, waits) = (world.another_line().runtime(1), world.runtime(100 + seed));
        let mut held = Vec::new();
        let mut waiting = Vec::new();
        for name in ["a", "b", "c", "d"] {
            held.push(holds.lock(name).unwrap().acquire().await.unwrap());
            waiting.push(Waiting::on(waits.lock(name).unwrap().acquire()));
        }
        world.settle().await;
        world.store.inject_push(PushRule::new(PushFault::Lose).times(4));
        for guard in held {
            guard.release().await.unwrap();
        }
        world.store.reconnect();
        world.settle().await;
        let since = world.now();
        for waiting in waiting {
            let _guard = waiting.taken_within(&world, secs(2)).await;
        }
        let waited = world.now().saturating_since(since);
        assert!(waited <= SOON, "seed {seed}: {waited:?}");
    }
}
