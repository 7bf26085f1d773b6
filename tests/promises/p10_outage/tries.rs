use std::task::Poll;

use leasehold::error::AcquireError;
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use super::{refusal, silences, unavailable};
use crate::support::{Waiting, World, lock, millis, poll_once, secs};

#[tokio::test]
async fn a_try_that_is_not_answered_is_neither_busy_nor_a_timeout() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        // Of one lost reply, too: the server may be well.
        for times in [1, u64::MAX] {
            world.store.inject(Rule::new(fault.clone()).on(CommandKind::Acquire).times(times));
            world.store.inject(Rule::new(fault.clone()).on(CommandKind::Withdraw).times(times));
            let tried = lock(&locks);
            let trying = tokio::spawn(async move { tried.try_acquire().await });
            world.pass(secs(2)).await;
            let outcome = trying.await.unwrap();
            let Err(AcquireError::Unavailable(outage)) = outcome else { panic!("{outcome:?}") };
            assert!(outage.failed > 0 && outage.silent_for <= secs(10), "{outage:?}");
            let waiting = Waiting::on(lock(&locks).acquire().wait(millis(0)));
            world.pass(secs(2)).await;
            match waiting.outcome().await {
                Ok(_) if times == 1 => {}
                outcome => drop(unavailable(outcome)),
            }
            let once = locks.once("form").unwrap();
            let running = tokio::spawn(async move { once.begin().await });
            world.pass(secs(2)).await;
            match running.await.unwrap() {
                Ok(_) if times == 1 => {}
                Err(AcquireError::Unavailable(_)) => {}
                outcome => panic!("{outcome:?}"),
            }
            world.store.heal();
            world.pass(secs(20)).await;
        }
    }
}

/// Whether somebody holds it cannot be told, although the door is known to be closed.
#[tokio::test]
async fn a_once_that_cannot_tell_who_came_first_says_so() {
    let world = World::new();
    let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
    let _run = others.once("form").unwrap().begin().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Inspect));
    let once = locks.once("form").unwrap();
    let running = tokio::spawn(async move { once.begin().await });
    world.pass(secs(2)).await;
    let outcome = running.await.unwrap();
    assert!(matches!(outcome, Err(AcquireError::Unavailable(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_try_behind_one_that_waits_for_a_dead_server_says_so() {
    let world = World::new();
    let locks = world.runtime(1);
    let held = locks.lock("held").unwrap().acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    let waiting = Waiting::on(lock(&locks).acquire());
    world.pass(secs(3)).await;
    let outcome = lock(&locks).try_acquire().await;
    assert!(matches!(outcome, Err(AcquireError::Unavailable(_))), "{outcome:?}");
    // What a task of this process holds is taken, whatever the server says.
    let outcome = locks.lock("held").unwrap().try_acquire().await;
    assert!(matches!(outcome, Ok(None)), "{outcome:?}");
    drop((waiting, held));
}

/// A server that is full, or loads its data, does not say that others hold the lock; nor does it to
/// those behind a task that it refuses.
#[tokio::test]
async fn a_try_that_is_refused_is_not_told_that_the_lock_is_taken() {
    let world = World::new();
    let locks = world.runtime(1);
    let faults = || {
        for kind in [CommandKind::Acquire, CommandKind::Heartbeat] {
            world.store.inject(Rule::new(Fault::Fail(refusal())).on(kind).always());
        }
    };
    faults();
    let refused = |outcome| {
        let refused = unavailable(outcome);
        assert_eq!(refused.error.what(), refusal().what());
        assert!(refused.answers_others, "{refused:?}");
        let text = refused.to_string();
        assert!(text.contains("the server answers, and "), "{text}");
    };
    let tries =
        || async { lock(&locks).try_acquire().await.map(|guard| guard.expect("nobody holds it")) };
    refused(tries().await);
    refused(lock(&locks).acquire().wait(millis(0)).await);
    let waiting = Waiting::on(lock(&locks).acquire().wait(secs(2)));
    world.pass(secs(1)).await;
    refused(tries().await);
    refused(lock(&locks).acquire().wait(millis(0)).await);
    drop(waiting);
}

/// What to do next fits a call that does not wait.
#[tokio::test]
async fn a_try_is_not_told_to_wait_for_longer() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::DelayReply(Gate::new())).always());
    drop(guard);
    let waiting = Waiting::on(lock(&locks).acquire().wait(millis(0)));
    world.pass(secs(2)).await;
    let text = unavailable(waiting.outcome().await).to_string();
    assert!(!text.contains("give the wait") && text.contains("check server"), "{text}");
}

/// The process stood still between the end of a release and the question: nothing was asked, so
/// nobody knows whether the lock is taken.
#[tokio::test]
async fn a_try_that_had_no_time_to_ask_does_not_say_taken() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Release));
    drop(guard);
    world.settle().await;
    let locks_too = locks.clone();
    let mut trying = Box::pin(async move { lock(&locks_too).try_acquire().await });
    assert!(poll_once(trying.as_mut()).is_pending());
    gate.open();
    world.settle().await;
    world.clock().advance(secs(3));
    let asked = world.store.sent(CommandKind::Acquire);
    let Poll::Ready(outcome) = poll_once(trying.as_mut()) else {
        assert!(world.store.sent(CommandKind::Acquire) > asked, "it asks");
        return;
    };
    assert!(!matches!(outcome, Ok(None)), "{outcome:?}");
}
