use leasehold::AcquireError;
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::{
    refusal, silences, unavailable,
    virtual_support::{Waiting, World, lock, millis, secs},
};

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

#[tokio::test]
async fn a_try_that_is_refused_is_no_outage() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Fail(refusal())).on(CommandKind::Acquire).always());
    let outcome = lock(&locks).try_acquire().await;
    let Err(AcquireError::Store(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.lock().unwrap().as_str(), World::NAME);
    let outcome = lock(&locks).acquire().wait(millis(0)).await;
    assert!(matches!(outcome, Err(AcquireError::Store(_))), "{outcome:?}");
}
