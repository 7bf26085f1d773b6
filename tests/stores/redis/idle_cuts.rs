//! Connections that end: the next call is sent on a new one, and one that was on its way once more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use StoreErrorKind::{Definite, Indeterminate};
use leasehold_core::{
    Clock, StoreErrorKind, SystemClock,
    store::{HoldAnswer, ReleaseAnswer, RenewAnswer},
};
use leasehold_redis::RedisStore;
use leasehold_testkit::{
    Patience, RedisServer, Reply, ScriptedPeer,
    contract::{alice, bob, ttl},
};

use super::support::{
    PATIENCE, assert_says_of_lock, calls, calls_within, config, connect, connect_with, granted,
    granted_in_the_end, store_on,
};

/// How many connections the server has, besides that of the question.
fn clients(server: &RedisServer) -> usize {
    let clients: String = server.query(&["CLIENT", "LIST"]);
    clients.lines().filter(|line| line.contains(" name=leasehold ")).count()
}

/// Ends every connection of a store while nobody uses it, as `timeout` and proxies do.
async fn cut(server: &RedisServer) {
    let gone = || async {
        // One may just be made in the background.
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        (clients(server) == 0).then_some(())
    };
    Patience::of(PATIENCE).until_async(gone).await.expect("all connections are gone");
    idle().await;
}

/// Lets the tasks of the connections see what has come.
async fn idle() {
    SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(20)).await;
}

#[tokio::test]
async fn every_command_works_after_its_idle_connection_was_cut() {
    let server = RedisServer::start();
    let config = config(&server.url()).connections(1);
    let store = connect_with(&config).await.expect("the server answers");
    let calls = calls(&store);
    for round in 1..=5 {
        let (id, name) = (alice(2 * round), calls.about("orders/43"));
        cut(&server).await;
        let fence = granted(&calls, id).await;
        cut(&server).await;
        let held = calls.hold(id, fence, (2, 1), ttl(60)).await.expect("hold");
        assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
        calls.renew(&[calls.renewal(id, fence, ttl(60))]).await.expect("renew");
        cut(&server).await;
        let renewed = calls.renew(&[calls.renewal(id, fence, ttl(60))]).await.expect("renew");
        assert!(matches!(renewed[..], [RenewAnswer::Renewed { .. }]), "{renewed:?}");
        calls.inspect().await.expect("inspect");
        cut(&server).await;
        calls.inspect().await.expect("inspect");
        granted(&name, alice(2 * round + 1)).await;
        cut(&server).await;
        assert!(name.withdraw(alice(2 * round + 1)).await.expect("withdraw"));
        cut(&server).await;
        let released = calls.release(id, fence, None).await.expect("release");
        assert_eq!(released, ReleaseAnswer::Released);
    }
}

#[tokio::test]
async fn a_server_that_went_while_nobody_asked_has_run_nothing() {
    let server = RedisServer::builder().tcp().start();
    let store = store_on(&server).await;
    granted(&calls(&store), alice(1)).await;
    server.kill();
    idle().await;
    let error = calls(&store).acquire(bob(1), ttl(60), None).await.expect_err("it was killed");
    assert_says_of_lock(&error, Definite, "cannot connect", "the server runs");
    server.restart();
    granted_in_the_end(&store, bob(1)).await;
}

/// A server that ends the connection instead of answering the first so many acquires.
async fn closing(times: usize) -> (ScriptedPeer, Arc<AtomicUsize>, Arc<RedisStore>) {
    let asked = Arc::<AtomicUsize>::default();
    let seen = Arc::clone(&asked);
    let peer = ScriptedPeer::start(move |command: &[String]| match command[0].as_str() {
        "HELLO" => Reply::hello("7.2.0", 2),
        "CLIENT" => Reply::ok(),
        _ if !command.iter().any(|word| word.contains("orders/42")) => Reply::bulk("ok"),
        _ if seen.fetch_add(1, Ordering::Relaxed) < times => Reply::Close,
        _ => Reply::Array(vec![Reply::Array(vec![
            Reply::bulk("busy"),
            Reply::Integer(1000),
            Reply::Integer(0),
        ])]),
    })
    .await
    .expect("a peer");
    let store = connect(&peer.url()).await.expect("it imitates a server");
    (peer, asked, store)
}

#[tokio::test]
async fn a_call_whose_connection_ends_is_sent_once_more_and_not_twice() {
    let (_peer, asked, store) = closing(1).await;
    calls(&store).acquire(alice(1), ttl(60), None).await.expect("the second copy is answered");
    assert_eq!(asked.load(Ordering::Relaxed), 2);

    let (_peer, asked, store) = closing(2).await;
    let error = calls(&store).acquire(alice(1), ttl(60), None).await.expect_err("cut twice");
    assert_says_of_lock(&error, Indeterminate, "", "check server");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_release_is_told_as_unknown_so_that_its_sender_repeats_it() {
    let (_peer, asked, store) = closing(1).await;
    let fence = leasehold_core::Fence::try_from(1_u64).expect("a token");
    let error = calls(&store).release(alice(1), fence, None).await.expect_err("it was cut");
    assert_says_of_lock(&error, Indeterminate, "", "check server");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_call_that_is_not_answered_in_time_is_not_sent_again() {
    let asked = Arc::<AtomicUsize>::default();
    let seen = Arc::clone(&asked);
    let peer = ScriptedPeer::start(move |command: &[String]| match command[0].as_str() {
        "HELLO" => Reply::hello("7.2.0", 2),
        "CLIENT" => Reply::ok(),
        _ if !command.iter().any(|word| word.contains("orders/42")) => Reply::bulk("ok"),
        _ => {
            seen.fetch_add(1, Ordering::Relaxed);
            Reply::Silence
        }
    })
    .await
    .expect("a peer");
    let store = connect(&peer.url()).await.expect("it imitates a server");
    let calls = calls_within(&store, Duration::from_secs(1));
    let error = calls.acquire(alice(1), ttl(60), None).await.expect_err("silence");
    assert_says_of_lock(&error, Indeterminate, "did not answer in time", "check server");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
