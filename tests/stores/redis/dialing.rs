//! Servers that are not there: an error in time that says which.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_core::{StoreErrorKind, store::AcquireAnswer};
use leasehold_testkit::{
    RedisServer, Reply, ScriptedPeer,
    contract::{alice, ttl},
};

use super::support::{
    assert_says, assert_says_of_lock, calls, calls_within, config, connect, connect_with, store_on,
};

use StoreErrorKind::{Definite, Indeterminate};

#[tokio::test]
async fn a_server_that_greets_and_falls_silent_is_given_up() {
    let greets = |command: &[String]| match command[0].as_str() {
        "HELLO" => Reply::hello("7.2.0", 2),
        // It tells no `run_id`.
        "CLIENT" | "INFO" => Reply::ok(),
        _ => Reply::Silence,
    };
    let peer = ScriptedPeer::start(greets).await.expect("a peer");
    // It has to greet in time, or the error would be another.
    let config = config(&peer.url()).command_timeout(Duration::from_millis(50));
    let error = connect_with(&config).await.expect_err("silence");
    // What was not answered is the check: nothing else was sent.
    assert_says(&error, Definite, "did not answer in time", "check server and network");
}

#[tokio::test]
async fn a_call_ends_at_its_deadline_while_a_dial_goes_on() {
    let peer = ScriptedPeer::start(|command: &[String]| match command[0].as_str() {
        "HELLO" => Reply::hello("7.2.0", 2),
        "CLIENT" => Reply::ok(),
        // The second connection is made for the first acquire; its script is not answered.
        _ if command.iter().any(|word| word.contains("orders/42")) => Reply::Silence,
        _ => Reply::bulk("ok"),
    })
    .await
    .expect("a peer");
    let store = connect(&peer.url()).await.expect("it imitates a server");
    let calls = calls_within(&store, Duration::from_millis(50));
    let answer = calls.acquire(alice(1), ttl(60), None).await;
    let error: leasehold_core::StoreError = match answer {
        Err(error) => error,
        Ok(answer @ AcquireAnswer::Granted(_)) => panic!("nobody granted {answer:?}"),
        Ok(other) => panic!("nobody answered {other:?}"),
    };
    assert_says_of_lock(&error, Indeterminate, "did not answer in time", "retried");
}

/// A connection that is cut while it is made, as by a proxy that restarts, is made once more.
#[tokio::test]
async fn a_connection_that_is_cut_while_it_is_made_is_made_once_more_and_not_twice() {
    // Of the connections to come, so many are cut at their greeting.
    let cuts = Arc::<AtomicUsize>::default();
    let cutting = Arc::clone(&cuts);
    let peer = ScriptedPeer::start(move |command: &[String]| match command[0].as_str() {
        "HELLO" => {
            let take = |left: usize| left.checked_sub(1);
            match cutting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                Ok(_) => Reply::Close,
                Err(_) => Reply::hello("7.2.0", 2),
            }
        }
        "CLIENT" => Reply::ok(),
        _ if command.iter().any(|word| word.contains("orders/42")) => {
            Reply::Array(vec![Reply::Integer(0)])
        }
        _ => Reply::bulk("ok"),
    });
    let peer = peer.await.expect("a peer");
    for (times, left) in [(1, 0), (2, 0), (3, 1)] {
        let store = connect(&peer.url()).await.expect("it imitates a server");
        cuts.store(times, Ordering::Relaxed);
        // The first renewal dials. Without a connection of its own it is sent on another.
        let calls = calls(&store);
        let fence = leasehold_core::Fence::try_from(1_u64).expect("a token");
        let renewed = calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await;
        assert!(renewed.is_ok(), "{times} cuts: {renewed:?}");
        assert_eq!(cuts.load(Ordering::Relaxed), left, "{times} cuts");
    }
}

#[tokio::test]
async fn an_inspection_that_fails_names_the_server_and_the_lock() {
    let server = RedisServer::builder().tcp().start();
    let store = store_on(&server).await;
    server.kill();
    let error = calls(&store).inspect().await.expect_err("it was killed");
    assert_says_of_lock(&error, Indeterminate, "cannot connect", "server");
    assert!(error.to_string().contains(&server.url()), "{error}");
}
