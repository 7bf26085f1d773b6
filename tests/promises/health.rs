//! What `health()` says: ready while the server answers, and not long after it has fallen silent.

use std::{future::IntoFuture, time::Duration};

use leasehold::{Health, LockRuntime};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{World, definite, indeterminate, lock, millis, secs};

fn silences() -> [Fault; 4] {
    let gate = Gate::new();
    [Fault::Fail(definite()), Fault::Fail(indeterminate()), Fault::LoseRequest, Fault::Delay(gate)]
}

/// Lets time pass until the runtime is ready, or is not; how long that takes.
async fn until(world: &World, locks: &LockRuntime, ready: bool) -> Duration {
    for step in 0..1_000 {
        if locks.health().is_ready() == ready {
            return millis(10) * step;
        }
        world.pass(millis(10)).await;
    }
    panic!("never: {}", locks.health());
}

#[tokio::test]
async fn a_server_that_answers_is_ready_without_any_traffic() {
    let world = World::new();
    let locks = world.runtime(1);
    assert!(locks.health().is_ready());
    world.pass(secs(60)).await;
    let health = locks.health();
    assert_eq!((health.answering_for, health.silent_for), (Some(secs(60)), None));
    let (text, no_error) = (health.to_string(), health.error.is_none());
    assert!(text == "the server has answered for 60s" && no_error, "{text}");
    assert!(!health.draining && health.leases_at_risk == 0);
}

/// Nobody pays for what nobody asked for, and who asks pays little.
#[tokio::test]
async fn an_idle_runtime_sends_a_look_every_two_seconds_once_it_was_asked() {
    let world = World::new();
    let locks = world.runtime(1);
    world.pass(secs(60)).await;
    assert_eq!(world.store.sent(CommandKind::Inspect), 0);
    for _ in 0..60 {
        assert!(locks.health().is_ready());
        world.pass(secs(1)).await;
    }
    assert!((29..=31).contains(&world.store.sent(CommandKind::Inspect)), "{:?}", world.store);
    // Whatever is answered spares a look.
    world.store.clear_log();
    for _ in 0..60 {
        lock(&locks).acquire().await.unwrap().release().await.unwrap();
        world.pass(secs(1)).await;
    }
    assert_eq!(world.store.sent(CommandKind::Inspect), 0);
}

#[tokio::test]
async fn an_idle_runtime_is_red_within_five_seconds_of_an_outage_and_green_after_it() {
    for fault in silences() {
        for asked_for in [millis(0), millis(700), secs(61)] {
            let world = World::new();
            let locks = world.runtime(1);
            let guard = lock(&locks).acquire().ttl(secs(600)).await.unwrap();
            assert!(locks.health().is_ready());
            world.pass(asked_for).await;
            world.store.inject(Rule::new(fault.clone()).always());
            let red = until(&world, &locks, false).await;
            assert!(red < secs(4), "{fault:?}: after {red:?}");
            let health = locks.health();
            assert!(health.answering_for.is_none() && health.silent_for >= Some(millis(500)));
            assert_eq!(health.leases_at_risk, 1, "{health}");
            world.pass(secs(20)).await;
            let health = locks.health();
            assert!(health.silent_for > Some(secs(20)) && health.error.is_some(), "{health}");
            let text = health.to_string();
            for words in ["the server has not answered for 2", "leases at risk: 1", "; "] {
                assert!(text.contains(words), "{words:?}: {text}");
            }
            world.store.heal();
            let green = until(&world, &locks, true).await;
            assert!(green < secs(4), "{fault:?}: after {green:?}");
            assert!(locks.health().answering_for < Some(secs(1)));
            drop(guard);
        }
    }
}

/// Also if the server has answered, as the last that was heard of it.
#[tokio::test]
async fn a_process_that_stands_still_is_red_until_it_hears_of_the_server() {
    let world = World::new();
    let locks = world.runtime(1);
    assert!(locks.health().is_ready());
    world.pass(secs(60)).await;
    let guard = lock(&locks).acquire().ttl(secs(60)).await.unwrap();
    // A busy machine is late with its look, and no task has run.
    world.clock().advance(millis(4_999));
    assert!(locks.health().is_ready(), "{}", locks.health());
    world.clock().advance(secs(2));
    let health = locks.health();
    assert!(!health.is_ready() && health.silent_for == Some(millis(6_999)), "{health}");
    assert_eq!(health.leases_at_risk, 1, "{health}");
    let text = health.to_string();
    assert!(text.starts_with("this process has heard nothing for 6.9s; "), "{text}");
    assert!(text.contains("it was stopped") && !text.contains("the server"), "{text}");
    world.settle().await;
    let health = locks.health();
    assert!(health.answering_for < Some(secs(1)) && health.is_ready(), "{health}");
    drop(guard);
}

/// The control: nobody asked for its health, so it did not ask the server.
#[tokio::test]
async fn the_first_question_finds_no_process_that_stands_still() {
    let world = World::new();
    let locks = world.runtime(1);
    world.clock().advance(secs(60));
    assert!(locks.health().is_ready(), "{}", locks.health());
}

#[tokio::test]
async fn a_runtime_in_use_is_red_within_a_second_of_an_outage() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        assert!(locks.health().is_ready());
        world.pass(secs(3)).await;
        world.store.inject(Rule::new(fault.clone()).always());
        for number in 0..20 {
            let lock = locks.lock(format!("orders/{number}")).unwrap();
            tokio::spawn(async move { drop(lock.acquire().await) });
            world.pass(millis(30)).await;
        }
        assert!(!locks.health().is_ready(), "{fault:?}: {}", locks.health());
    }
}

/// One lost reply, and a pause as of a server that forks, are no outage.
#[tokio::test]
async fn a_hiccup_does_not_show() {
    let world = World::new();
    let locks = world.runtime(1);
    let is_ready = |health: Health| assert!(health.is_ready(), "{health}");
    is_ready(locks.health());
    world.store.inject(Rule::new(Fault::Fail(indeterminate())));
    drop(lock(&locks).try_acquire().await);
    is_ready(locks.health());
    world.pass(secs(4)).await;
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::Delay(gate.clone())));
    let waiting = tokio::spawn(lock(&locks).acquire().into_future());
    world.pass(millis(490)).await;
    is_ready(locks.health());
    gate.open();
    drop(waiting.await.unwrap().unwrap());
    let health = locks.health();
    assert!(health.answering_for > Some(secs(4)), "{health}");
}

#[tokio::test]
async fn a_runtime_that_drains_is_not_ready() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    assert!(locks.health().is_ready());
    let draining = locks.clone();
    let drain = tokio::spawn(async move { draining.drain(secs(5)).await });
    world.settle().await;
    let health = locks.health();
    assert!(health.draining && !health.is_ready() && health.answering_for.is_some(), "{health}");
    guard.release().await.unwrap();
    world.settle().await;
    drop(drain.await.unwrap());
}

/// A server that refuses for now serves again by itself: it is not taken for one that is away, and its refusal is told
/// until the next answer.
#[tokio::test]
async fn a_refusal_that_may_pass_is_told_by_a_runtime_that_stays_ready() {
    let world = World::new();
    let locks = world.runtime(1);
    lock(&locks).acquire().await.unwrap().release().await.unwrap();
    world.store.inject(Rule::new(Fault::Fail(definite().as_answer())));
    drop(lock(&locks).try_acquire().await);
    let health = locks.health();
    assert!(health.is_ready() && health.error.is_some(), "{health}");
    assert!(health.to_string().ends_with("; refused; try again"), "{health}");
    let guard = lock(&locks).try_acquire().await.unwrap();
    assert!(guard.is_some() && locks.health().error.is_none(), "{}", locks.health());
}
