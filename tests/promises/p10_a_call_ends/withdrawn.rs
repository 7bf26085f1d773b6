//! A try waits for what its own process withdraws, and does not call it a taken lock.

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    error::{AcquireError, StoreError, StoreErrorKind},
    once::{Begun, OnceOutcome},
};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule, Wrong};

use crate::support::{Waiting, World, at_most_polls, indeterminate, lock, millis, secs};

/// Makes a right runtime, or one that does something wrong.
type Start = fn(&World, LockRuntimeBuilder) -> LockRuntime;

/// A runtime whose try was executed and got no answer. The first `times` copies of its withdrawal
/// meet a fault.
async fn with_a_lost_try(fault: Fault, times: u64, start: Start) -> (World, LockRuntime) {
    let world = World::new();
    let locks = start(&world, world.builder(1));
    world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Acquire));
    world.store.inject(Rule::new(fault).on(CommandKind::Withdraw).times(times));
    let lost = Waiting::on(lock(&locks).acquire().wait(millis(0)));
    world.pass(secs(2)).await;
    let outcome = lost.outcome().await;
    assert!(matches!(outcome, Err(AcquireError::Unavailable(_))), "{outcome:?}");
    assert!(world.holder(World::NAME).await.is_some(), "the server has granted it");
    (world, locks)
}

/// Not executed, and the sender does not know it.
fn failure() -> Fault {
    Fault::Fail(indeterminate())
}

#[tokio::test]
async fn a_try_after_a_lost_reply_gets_the_lock() {
    let (world, locks) = with_a_lost_try(failure(), 1, World::start).await;
    let since = world.now();
    assert!(lock(&locks).try_acquire().await.unwrap().is_some());
    assert_eq!(world.now(), since, "the withdrawal is repeated at once");
}

/// The control: a runtime that does not know of its withdrawal takes its own grant for another's.
#[tokio::test]
async fn control_a_withdrawal_that_is_not_awaited_makes_a_free_lock_look_taken() {
    let forgetful: Start = |world, builder| world.start_wrong(builder, Wrong::HidesWithdrawals);
    let gate = Gate::new();
    let (world, locks) = with_a_lost_try(Fault::Delay(gate.clone()), 1, forgetful).await;
    assert!(lock(&locks).try_acquire().await.unwrap().is_none(), "nobody holds it");
    let begun = locks.once(World::NAME).unwrap().begin().await.unwrap();
    assert!(matches!(begun, Begun::Duplicate(_)), "nothing runs");
    gate.open();
    world.settle().await;
    assert!(lock(&locks).try_acquire().await.unwrap().is_some());
}

#[tokio::test]
async fn a_once_after_a_lost_reply_is_the_first() {
    let (world, locks) = with_a_lost_try(failure(), 1, World::start).await;
    let (since, once) = (world.now(), locks.once(World::NAME).unwrap());
    let run = once.run(|_| async { Ok::<_, String>(()) }).await.unwrap();
    assert!(matches!(run, OnceOutcome::Ran(())), "{run:?}");
    assert_eq!(world.now(), since);
}

/// Without any fault: a try is dropped while its command is on its way.
#[tokio::test]
async fn a_try_after_a_dropped_one_waits_for_its_withdrawal() {
    for kind in [CommandKind::Acquire, CommandKind::Withdraw] {
        for once in [false, true] {
            let world = World::new();
            let locks = world.runtime(1);
            world.slow_down(kind, millis(4));
            if kind == CommandKind::Withdraw {
                let reply = Fault::DelayReply(Gate::new());
                world.store.inject(Rule::new(reply).on(CommandKind::Acquire));
            }
            let tried = lock(&locks);
            assert!(at_most_polls(1, Box::pin(tried.try_acquire())).await.is_none());
            let since = world.now();
            let again = if once {
                let once = locks.once(World::NAME).unwrap();
                tokio::spawn(async move { matches!(once.begin().await.unwrap(), Begun::First(_)) })
            } else {
                tokio::spawn(async move { tried.try_acquire().await.unwrap().is_some() })
            };
            world.until("it is answered", async || again.is_finished()).await;
            assert!(again.await.unwrap(), "{kind:?}: nobody else asks");
            assert_eq!(world.now().saturating_since(since), millis(4), "{kind:?}: one round trip");
        }
    }
}

#[tokio::test]
async fn a_withdrawal_without_an_answer_is_no_taken_lock() {
    for fault in [Fault::LoseRequest, Fault::Delay(Gate::new()), failure()] {
        let (world, locks) = with_a_lost_try(fault.clone(), u64::MAX, World::start).await;
        let since = world.now();
        let waiting = Waiting::on(lock(&locks).acquire().wait(millis(0)));
        let once = locks.once(World::NAME).unwrap();
        let running = tokio::spawn(async move { once.begin().await });
        world.pass(millis(1_999)).await;
        assert!(!waiting.is_over() && !running.is_finished(), "{fault:?}");
        world.pass(millis(1)).await;
        assert_eq!(world.now(), since + secs(2));
        assert!(waiting.is_over() && running.is_finished(), "{fault:?}: one command timeout");
        let outcome = waiting.outcome().await;
        let Err(AcquireError::Unavailable(outage)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(outage.error.kind(), StoreErrorKind::Indeterminate);
        let begun = running.await.unwrap();
        assert!(matches!(begun, Err(AcquireError::Unavailable(_))), "{begun:?}");
    }
}

/// The pauses between the copies of a withdrawal grow to a quarter of a second; a call that comes
/// in one ends it.
#[tokio::test]
async fn a_call_ends_the_pause_of_a_withdrawal() {
    for tries in [true, false] {
        let (world, locks) = with_a_lost_try(failure(), 12, World::start).await;
        let sent = || world.store.sent(CommandKind::Withdraw);
        while sent() < 12 {
            world.pass(millis(1)).await;
        }
        world.pass(millis(5)).await;
        assert_eq!(sent(), 12, "it pauses");
        let since = world.now();
        let acquire = lock(&locks).acquire();
        let waiting = Waiting::on(if tries { acquire.wait(millis(0)) } else { acquire });
        let guard = waiting.taken(&world).await;
        assert!(guard.is_held() && world.now() == since, "at once");
    }
}

/// A grant of another process is a taken lock, also while a withdrawal is on its way.
#[tokio::test]
async fn a_lock_that_another_got_meanwhile_is_taken() {
    let (world, locks) = with_a_lost_try(failure(), 1, World::start).await;
    let others = world.another_line().runtime(2);
    let theirs = Waiting::queued(&world, &others).await;
    assert!(lock(&locks).try_acquire().await.unwrap().is_none());
    assert!(theirs.taken(&world).await.is_held());
}

/// The server answers, and refuses the withdrawal: a try says so at once.
#[tokio::test]
async fn a_withdrawal_that_is_refused_ends_a_try_at_once() {
    let full = || StoreError::new(StoreErrorKind::Definite, "OOM", "free memory").as_answer();
    let (world, locks) = with_a_lost_try(Fault::Fail(full()), 40, World::start).await;
    world.pass(secs(1)).await;
    for _ in 0..2 {
        let since = world.now();
        let outcome = lock(&locks).try_acquire().await;
        let Err(AcquireError::Unavailable(outage)) = outcome else { panic!("{outcome:?}") };
        assert!(outage.to_string().contains("OOM"), "{outage}");
        assert_eq!(world.now(), since);
    }
    world.store.heal();
    assert!(lock(&locks).try_acquire().await.unwrap().is_some());
}
