//! Replicas: they answer what only reads, and have no say about locks.

use std::sync::Arc;

use leasehold_core::{
    Fence, StoreError,
    StoreErrorKind::Definite,
    store::{AcquireAnswer, Heartbeat, HoldAnswer, Inspection, RenewAnswer},
};
use leasehold_redis::{RedisPool, RedisStore};
use leasehold_testkit::{
    Patience, RedisServer,
    contract::{Calls, alice, bob, secs, ttl},
};

use super::support::{
    PATIENCE, assert_says, assert_says_of_lock, calls, config, connect, connect_with, granted,
};

/// A master and its replica.
fn pair() -> (RedisServer, RedisServer) {
    let start = || RedisServer::builder().tcp().arg("repl-diskless-sync-delay", "0").start();
    let (master, replica) = (start(), start());
    follow(&replica, &master);
    (master, replica)
}

/// Makes a server the replica of another, and waits until it is.
fn follow(replica: &RedisServer, master: &RedisServer) {
    let port = master.port().expect("a port").to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    let up = || {
        let info: String = replica.query(&["INFO", "replication"]);
        info.contains("master_link_status:up").then_some(())
    };
    Patience::of(PATIENCE).until(up).expect("the replica follows");
}

#[tokio::test]
async fn connecting_to_a_replica_is_refused_with_its_masters_address() {
    let (master, replica) = pair();
    let error = connect(&replica.url()).await.expect_err("a replica");
    let address = format!("127.0.0.1:{}", master.port().expect("a port"));
    assert_says(&error, Definite, &format!("is a replica of {address}"), "the master's address");
    assert!(error.to_string().contains(&replica.url()), "{error}");

    let pool = RedisPool::new(&config(&replica.url())).expect("settings that can work");
    let script = leasehold_redis::Script::new("return redis.call('GET', KEYS[1])");
    let error = pool.call(&script, ["a".into()], []).await.expect_err("a replica");
    assert_says(&error, Definite, &format!("is a replica of {address}"), "the master's address");

    replica.command(&["REPLICAOF", "NO", "ONE"]);
    connect(&replica.url()).await.expect("it was promoted");
}

#[tokio::test]
async fn a_user_who_may_not_ask_for_the_role_hears_the_rest() {
    let (_master, replica) = pair();
    let rights = ["ACL", "SETUSER", "app", "on", ">sesame", "~*", "&*", "+@all", "-role"];
    replica.command(&rights);
    let error = connect(&replica.url_with("app", "sesame", 0)).await.expect_err("a replica");
    assert_says(&error, Definite, "is a replica of another server", "the master's address");
}

/// Every connection of a store is made, and its server is then demoted.
async fn demoted(server: &RedisServer) -> (Arc<RedisStore>, Calls, Fence) {
    let store = connect_with(&config(&server.url()).connections(1)).await.expect("a master");
    let calls = calls(&store);
    let fence = granted(&calls, alice(1)).await;
    calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await.expect("renew");
    calls.inspect().await.expect("inspect");
    (store, calls, fence)
}

fn refused(error: Result<impl std::fmt::Debug, StoreError>) {
    let error = error.expect_err("a replica has no say");
    assert_says(&error, Definite, "", "master's address");
}

#[tokio::test]
async fn a_demoted_master_that_lost_the_lease_does_not_end_it() {
    for case in 0..7 {
        let server = RedisServer::builder().tcp().start();
        let (_store, calls, fence) = demoted(&server).await;
        // It is a replica of nobody, whose data is gone: whatever it says is wrong.
        server.command(&["DEL", "leasehold:{orders/42}:lease"]);
        server.command(&["REPLICAOF", "127.0.0.1", "1"]);
        let heartbeat = Heartbeat { number: 1, claim_window: secs(3) };
        match case {
            0 => refused(calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await),
            1 => refused(calls.hold(alice(1), fence, (2, 1), ttl(60)).await),
            2 => refused(calls.release(alice(1), fence, None).await),
            3 => refused(calls.inspect().await),
            4 => refused(calls.force_release(alice(1), fence).await),
            5 => refused(calls.withdraw(bob(1)).await),
            _ => refused(calls.wait(bob(1), ttl(60), None, heartbeat).await),
        }
        // It is asked again on a new connection, once it is a master.
        server.command(&["REPLICAOF", "NO", "ONE"]);
        let renewed = || async {
            match calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await {
                Ok(answers) => Some(answers),
                Err(error) if error.kind() == Definite => None,
                Err(error) => panic!("{error}"),
            }
        };
        let renewed = Patience::of(PATIENCE).until_async(renewed).await.expect("a master");
        assert!(matches!(renewed[..], [RenewAnswer::DataLost]), "{renewed:?}");
    }
}

#[tokio::test]
async fn repeats_and_tries_are_not_answered_by_a_demoted_master() {
    for case in 0..4 {
        let server = RedisServer::builder().tcp().start();
        let (_store, calls, fence) = demoted(&server).await;
        let held = calls.hold(alice(1), fence, (2, 1), ttl(60)).await.expect("hold");
        assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
        if case == 2 {
            calls.release(alice(1), fence, Some(secs(60))).await.expect("release");
        }
        server.command(&["REPLICAOF", "127.0.0.1", "1"]);
        match case {
            0 => refused(calls.acquire(alice(1), ttl(60), None).await),
            1 => refused(calls.hold(alice(1), fence, (2, 1), ttl(60)).await),
            2 => refused(calls.release(alice(1), fence, Some(secs(60))).await),
            // The lease that it still has may be over.
            _ => refused(calls.acquire(bob(1), ttl(60), None).await),
        }
    }
}

#[tokio::test]
async fn a_withdrawal_that_may_not_leave_its_mark_is_refused() {
    let server = RedisServer::start();
    let store = connect(&server.url()).await.expect("a master");
    let calls = calls(&store);
    server.command(&["ACL", "SETUSER", "default", "-zadd"]);
    let error = calls.withdraw(bob(1)).await.expect_err("ZADD is not allowed");
    assert_says_of_lock(&error, leasehold_core::StoreErrorKind::Config, "", "docs/operations.md");
    server.command(&["ACL", "SETUSER", "default", "+zadd"]);
    calls.withdraw(bob(1)).await.expect("withdraw");
    let answer = calls.acquire(bob(1), ttl(60), None).await.expect("acquire");
    assert_eq!(answer, AcquireAnswer::Withdrawn);
    assert!(matches!(calls.inspect().await, Ok(Inspection::Free { .. })));
}
