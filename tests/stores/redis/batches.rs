//! Commands of one moment travel as one call, and none of them depends on another.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use StoreErrorKind::Indeterminate;
use leasehold_core::{
    Clock, FenceSettings, NamePattern, StoreError, StoreErrorKind, SystemClock,
    store::{AcquireAnswer, ReleaseAnswer},
};
use leasehold_redis::RedisStore;
use leasehold_testkit::{
    CommandKind, FaultProxy, Gate, RedisServer, Reply, ScriptedPeer,
    contract::{Calls, alice, bob, secs, ttl},
    proxy::{Action, Rule},
};
use tokio::task::yield_now;

use super::support::{calls, calls_within, config, connect_with, granted};

/// A store with one connection for commands.
async fn on_one_connection(url: &str) -> Arc<RedisStore> {
    let config = config(url).connections(1).command_timeout(secs(10));
    connect_with(&config).await.expect("the server answers")
}

async fn try_each(calls: &Calls, count: u64) -> Vec<Result<AcquireAnswer, StoreError>> {
    let tries = (0..count).map(|number| {
        let calls = calls.about(&format!("batch/{number}"));
        tokio::spawn(async move { calls.acquire(alice(number), ttl(60), None).await })
    });
    let mut answers = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        answers.push(one.await.expect("no panic"));
    }
    answers
}

/// On one thread, all of them ask before the first is answered.
#[tokio::test]
async fn what_waits_for_a_connection_travels_as_one_call() {
    let server = RedisServer::start();
    let store = on_one_connection(&server.url()).await;
    let calls = calls(&store);
    granted(&calls, bob(1)).await;
    server.command(&["CONFIG", "RESETSTAT"]);
    let answers = try_each(&calls, 65).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(AcquireAnswer::Granted(_)))));
    // One alone, and the 64 others; a few more if the server is slow.
    let sent = server.calls("evalsha");
    assert!((2..=8).contains(&sent), "{sent} calls for 65 commands");
}

/// A call has one retention.
#[tokio::test]
async fn names_of_two_retentions_travel_as_two_calls() {
    let server = RedisServer::start();
    let odd = NamePattern::new("batch/*[13579]").expect("a pattern");
    let fencing = FenceSettings::default().retention_of(odd, secs(3600)).expect("in range");
    let config = config(&server.url()).connections(1).fencing(fencing);
    let calls = calls(&connect_with(&config).await.expect("the server answers"));
    granted(&calls, bob(1)).await;
    server.command(&["CONFIG", "RESETSTAT"]);
    let answers = try_each(&calls, 129).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(AcquireAnswer::Granted(_)))));
    for number in 0..129_u64 {
        let key = format!("leasehold:{{batch/{number}}}:lease");
        let (left, week) = (server.query::<u64>(&["PTTL", &key]), 7 * 24 * 3_600_000);
        let least = if number % 2 == 1 { 3_600_000 } else { week };
        assert!((least..=least / 8 * 9).contains(&left), "{number}: {left} ms");
    }
    // One alone, and twice 64 others; some more if the server is slow.
    let sent = server.calls("evalsha");
    assert!((3..=16).contains(&sent), "{sent} calls for 129 commands");
}

#[tokio::test]
async fn a_key_of_another_program_spoils_no_other_answer() {
    let server = RedisServer::start();
    let store = on_one_connection(&server.url()).await;
    let spoiled = [3, 20, 40];
    for number in spoiled {
        server.command(&["SET", &format!("leasehold:{{batch/{number}}}:lease"), "x"]);
    }
    for (number, answer) in try_each(&calls(&store), 50).await.iter().enumerate() {
        if spoiled.contains(&number) {
            let error = answer.as_ref().expect_err("another program's key");
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        } else {
            assert!(matches!(answer, Ok(AcquireAnswer::Granted(_))), "{number}: {answer:?}");
        }
    }
}

/// A caller sends its command itself, and is then polled no more.
#[tokio::test]
async fn a_caller_that_is_not_polled_holds_up_no_other() {
    let server = RedisServer::start();
    let calls = calls(&on_one_connection(&server.url()).await);
    let stuck = calls.about("stuck");
    let mut stuck = pin!(stuck.acquire(alice(99), ttl(60), None));
    assert!(poll_once(stuck.as_mut()).await.is_none());
    let others = try_each(&calls, 200).await;
    assert!(others.iter().all(Result::is_ok));
    assert!(stuck.await.is_ok());
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match future.as_mut().poll(cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

/// A call in flight, so that further commands wait for a courier.
async fn in_flight(calls: &Calls) -> Pin<Box<impl Future<Output = Tried>>> {
    let calls = calls.about("alone");
    let mut tried = Box::pin(async move { calls.acquire(alice(1), ttl(60), None).await });
    assert!(poll_once(tried.as_mut()).await.is_none());
    tried
}

type Tried = Result<AcquireAnswer, StoreError>;

#[tokio::test]
async fn what_is_dropped_before_it_was_sent_is_never_sent() {
    let server = RedisServer::start();
    let calls = calls(&on_one_connection(&server.url()).await);
    let sent = in_flight(&calls).await;
    {
        let dropped = calls.about("dropped");
        let mut dropped = pin!(dropped.acquire(alice(9), ttl(60), None));
        assert!(poll_once(dropped.as_mut()).await.is_none());
    }
    yield_now().await;
    assert!(matches!(sent.await, Ok(AcquireAnswer::Granted(_))));
    granted(&calls.about("last"), alice(10)).await;
    assert!(!server.query::<bool>(&["EXISTS", "leasehold:{dropped}:lease"]));
}

/// Neither a silent connection nor the patience of others delays the end of a call.
#[tokio::test]
async fn each_command_of_a_call_has_its_own_deadline() {
    let server = RedisServer::builder().tcp().start();
    let proxy = FaultProxy::before(&server);
    let store = on_one_connection(&proxy.url()).await;
    let gate = Gate::new();
    proxy.inject(Rule::new(Action::Hold(gate.clone())).replies().on(CommandKind::Acquire).always());
    let patient = calls(&store);
    let hasty = calls_within(&store, Duration::from_millis(100)).about("hasty");
    let others = tokio::spawn({
        let patient = patient.clone();
        async move { try_each(&patient, 20).await }
    });
    yield_now().await;
    let began = SystemClock.now();
    let error = hasty.acquire(bob(1), ttl(60), None).await.expect_err("nothing is answered");
    assert_eq!(error.kind(), Indeterminate);
    assert!(SystemClock.now().saturating_since(began) < secs(5), "the others wait for 10 s");
    gate.open();
    let answers = others.await.expect("no panic");
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

/// The connection ends before the answer to an acquire and a release that share a call.
#[tokio::test]
async fn only_what_may_be_repeated_is_sent_again() {
    let word = |command: &[String], word: &str| command.iter().any(|one| one == word);
    let peer = ScriptedPeer::start(move |command: &[String]| match command[0].as_str() {
        "HELLO" => Reply::hello("7.2.0", 2),
        "CLIENT" => Reply::ok(),
        _ if word(command, "release") => Reply::Close,
        _ if word(command, "try") => {
            let busy =
                || Reply::Array(vec![Reply::bulk("busy"), Reply::Integer(1000), Reply::Integer(0)]);
            let tries = command.iter().filter(|word| *word == "try");
            Reply::Array(tries.map(|_| busy()).collect())
        }
        _ => Reply::bulk("ok"),
    })
    .await
    .expect("a peer");
    let calls = calls(&on_one_connection(&peer.url()).await);
    let fence = leasehold_core::Fence::try_from(1_u64).expect("a token");
    let sent = in_flight(&calls).await;
    let names = ["a", "b", "c", "d"].map(|name| calls.about(name));
    let (one, ended, other, also_ended) = tokio::join!(
        names[0].acquire(alice(11), ttl(60), None),
        names[1].release(alice(12), fence, None),
        names[2].acquire(alice(13), ttl(60), None),
        names[3].release(alice(14), fence, None),
    );
    for acquired in [one, other] {
        assert!(matches!(acquired, Ok(AcquireAnswer::Busy { .. })), "{acquired:?}");
    }
    for released in [ended, also_ended] {
        let error = released.map(|answer| answer == ReleaseAnswer::Released).expect_err("cut");
        assert_eq!(error.kind(), Indeterminate);
    }
    assert!(sent.await.is_ok());
    let commands = peer.commands();
    let calls_with = |what: &str| commands.iter().filter(|command| word(command, what)).count();
    // The second copies of the two acquires share a call.
    assert_eq!((calls_with("release"), calls_with("try")), (1, 1 + 1 + 1), "{commands:?}");
}

/// The connections live on a tokio runtime that has stopped.
#[test]
fn no_command_waits_for_a_tokio_runtime_that_has_stopped() {
    let server = RedisServer::start();
    let stopped = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("one");
    let store = stopped.block_on(on_one_connection(&server.url()));
    stopped.shutdown_background();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    runtime.block_on(async {
        let began = SystemClock.now();
        let answers = try_each(&calls(&store), 20).await;
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        // Their own deadline is 20 s.
        assert!(SystemClock.now().saturating_since(began) < secs(10));
    });
}

/// Commands that have to be sent one by one do not wait for each other: 40 in a row would take 8 s.
#[tokio::test]
async fn a_missing_right_costs_others_one_round_trip_more() {
    let server = RedisServer::builder().tcp().start();
    let proxy = FaultProxy::before(&server);
    let rights = ["~leasehold:{preflight:*", "~leasehold:{batch/1*", "&leasehold:*", "+@all"];
    server.command(&[&["ACL", "SETUSER", "app", "reset", "on", ">sesame"][..], &rights].concat());
    let store = on_one_connection(&proxy.url_with("app", "sesame", 0)).await;
    proxy.delay_all(Duration::from_millis(100));
    let answers = try_each(&calls_within(&store, secs(5)), 40).await;
    for (number, answer) in answers.iter().enumerate() {
        let is_allowed = number == 1 || (10..20).contains(&number);
        assert_eq!(answer.is_ok(), is_allowed, "{number}: {answer:?}");
        let is_told = answer.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Config);
        assert!(is_allowed || is_told, "{number}: {answer:?}");
    }
}

/// The server looks at the rights to all keys before it runs a script.
#[tokio::test]
async fn a_missing_right_to_one_key_spoils_no_other_answer() {
    let server = RedisServer::start();
    let rights = ["~leasehold:{preflight:*", "~leasehold:{batch/1*", "&leasehold:*", "+@all"];
    server.command(&[&["ACL", "SETUSER", "app", "reset", "on", ">sesame"][..], &rights].concat());
    let store = on_one_connection(&server.url_with("app", "sesame", 0)).await;
    for (number, answer) in try_each(&calls(&store), 20).await.iter().enumerate() {
        let is_allowed = number == 1 || number >= 10;
        match answer {
            Ok(AcquireAnswer::Granted(_)) => assert!(is_allowed, "{number}"),
            Err(error) => assert!(!is_allowed && error.kind() == StoreErrorKind::Config, "{error}"),
            other => panic!("{number}: {other:?}"),
        }
    }
}
