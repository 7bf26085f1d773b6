use leasehold::error::AcquireError;
use leasehold_testkit::{CommandKind, Fault, Rule};

use super::unavailable;
use crate::support::{World, definite, lock, millis, secs};

/// One lock's command is lost, and the server answers others: that is no silence of the server.
#[tokio::test]
async fn a_lost_command_beside_answered_ones_is_not_told_as_a_silence() {
    let world = World::new();
    let locks = world.runtime(1);
    let _held = locks.lock("other").unwrap().acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Acquire));
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Withdraw).times(9));
    let tried = lock(&locks);
    let trying = tokio::spawn(async move { tried.try_acquire().await });
    world.pass(millis(500)).await;
    locks.inspect("other").await.unwrap();
    world.pass(secs(2)).await;
    let outcome = trying.await.unwrap();
    let Err(AcquireError::Unavailable(outage)) = outcome else { panic!("{outcome:?}") };
    let text = outage.to_string();
    assert!(!text.contains("has not answered"), "{text}");
    assert!(outage.silent_for == outage.waited && outage.answers_others, "{outage:?}");
    for words in ["lock \"orders/42\"", "its command was not answered", "others of this process"] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_times_of_zero() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Fail(definite())).always());
    let outcome = lock(&locks).try_acquire().await;
    let Err(AcquireError::Unavailable(outage)) = outcome else { panic!("{outcome:?}") };
    let text = outage.to_string();
    assert!(!text.contains("0ns") && text.contains("the server did not answer"), "{text}");
    assert!(!outage.answers_others, "{outage:?}");
}

/// They may be those of other locks.
#[tokio::test]
async fn failed_commands_are_told_as_those_of_the_process() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    for name in ["a", "b", "c"] {
        let other = locks.lock(name).unwrap();
        tokio::spawn(async move { drop(other.try_acquire().await) });
    }
    let tried = lock(&locks);
    let trying = tokio::spawn(async move { tried.try_acquire().await });
    world.pass(secs(3)).await;
    let outage = unavailable(trying.await.unwrap().map(|guard| guard.expect("no answer")));
    let text = outage.to_string();
    assert!(text.contains("has not answered for 2s"), "{text}");
    assert!(outage.failed > 1 && text.contains("commands of this process failed"), "{text}");
}
