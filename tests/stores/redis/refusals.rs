//! Servers in trouble: what they refuse has not run, and what ends a lease is not refused.

use std::{os::unix::net::UnixStream, time::Duration};

use leasehold_core::{
    StoreErrorKind::Definite,
    store::{AcquireAnswer, HoldAnswer, ReleaseAnswer, RenewAnswer},
};
use leasehold_testkit::{
    LockText, Patience, RedisServer,
    contract::{alice, bob, ttl},
};

use super::support::{
    PATIENCE, assert_says, assert_says_of_lock, calls, connect, digest, granted, store_on,
};

fn set(server: &RedisServer, key: &str, value: &str) {
    server.command(&["CONFIG", "SET", key, value]);
}

#[tokio::test]
async fn a_full_server_refuses_new_leases_and_lets_old_ones_live_and_end() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    let other = calls.about("orders/43");
    granted(&other, alice(2)).await;
    let forced = calls.about("orders/44");
    let forced_fence = granted(&forced, alice(3)).await;
    // A mark that is over.
    LockText::change(&server, "leasehold:{orders/43}:lease", |text| {
        text.marks = Some(1_000_000_000_000);
    });
    set(&server, "maxmemory", "1");

    let before = digest(&server);
    let free = calls.about("orders/45");
    for calls in [&free, &free] {
        let error = calls.acquire(alice(4), ttl(60), None).await.expect_err("no memory");
        assert_says(&error, Definite, "OOM", "maxmemory");
    }
    let busy = other.acquire(bob(1), ttl(60), None).await.expect("an answer");
    assert!(matches!(busy, AcquireAnswer::Busy { .. }), "{busy:?}");
    assert_eq!(digest(&server), before);

    let held = calls.hold(alice(1), fence, (2, 1), ttl(60)).await.expect("hold");
    assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
    let renewal = calls.renewal(alice(1), fence, ttl(60));
    let renewed = calls.renew(&[renewal]).await.expect("renew");
    assert!(matches!(renewed[..], [RenewAnswer::Renewed { .. }]), "{renewed:?}");
    let released = calls.release(alice(1), fence, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
    assert!(other.withdraw(alice(2)).await.expect("withdraw"));
    assert!(!other.withdraw(alice(9)).await.expect("withdraw of nothing"));
    forced.force_release(alice(3), forced_fence).await.expect("force_release");

    set(&server, "maxmemory", "0");
    granted(&free, alice(4)).await;
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[tokio::test]
async fn a_demoted_master_is_left_for_a_new_connection() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let calls = calls(&store);
    let fence = granted(&calls, alice(1)).await;
    let accepted = || server.told("stats", "total_connections_received");
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let before = accepted();
    let error = calls.release(alice(1), fence, None).await.expect_err("a replica");
    assert_says_of_lock(&error, Definite, "READONLY", "write the master's address");
    for _ in 0..3 {
        let error = calls.release(alice(1), fence, None).await.expect_err("a replica");
        assert_says_of_lock(&error, Definite, "is a replica of 127.0.0.1:1", "master's address");
    }
    // One new connection of the store, which was refused for all who asked, and the one that asks;
    // more on a machine so slow that the refusal did not stand for all three.
    assert!((2..=4).contains(&(accepted() - before)));
    server.command(&["REPLICAOF", "NO", "ONE"]);
    let released = || async { calls.release(alice(1), fence, None).await.ok() };
    let released = Patience::of(PATIENCE).until_async(released).await.expect("a master again");
    assert_eq!(released, ReleaseAnswer::Released);
}

#[tokio::test]
async fn a_master_without_replicas_refuses_for_now() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    set(&server, "min-replicas-to-write", "1");
    let before = digest(&server);
    let free = calls.about("orders/43");
    let error = free.acquire(alice(2), ttl(60), None).await.expect_err("no replica");
    assert_says(&error, Definite, "NOREPLICAS", "start the replicas");
    let error = calls.release(alice(1), fence, None).await.expect_err("no replica");
    assert_says_of_lock(&error, Definite, "NOREPLICAS", "start the replicas");
    let renewal = calls.renewal(alice(1), fence, ttl(60));
    let error = calls.renew(&[renewal]).await.expect_err("no replica");
    assert_says(&error, Definite, "NOREPLICAS", "start the replicas");
    assert_eq!(digest(&server), before);
    set(&server, "min-replicas-to-write", "0");
    let released = calls.release(alice(1), fence, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
}

#[tokio::test]
async fn a_server_with_too_many_clients_refuses_for_now() {
    let builder = || RedisServer::builder().arg("maxclients", "4");
    refuses_for_now(&builder().start(), "").await;
    // Also to those who log in: it is not the login that is refused.
    refuses_for_now(&builder().password("geheim").start(), "geheim").await;
}

async fn refuses_for_now(server: &RedisServer, password: &str) {
    let url = server.url_with("", password, 0);
    let crowd = || UnixStream::connect(server.socket()).expect("the socket takes connections");
    let crowd: Vec<_> = (0..8).map(|_| crowd()).collect();
    let error = connect(&url).await.expect_err("four are there");
    // The server closes behind its words, so that they may be lost on the way.
    let told = error.what().contains("max number of clients");
    assert!(told || error.what().contains("cannot connect"), "{error}");
    assert_eq!(error.kind(), Definite, "{error}");
    drop(crowd);
    let connected = || async {
        match connect(&url).await {
            Ok(store) => Some(store),
            Err(error) if error.kind() == Definite => None,
            Err(error) => panic!("{error}"),
        }
    };
    let store = Patience::of(Duration::from_secs(20)).until_async(connected).await;
    granted(&calls(&store.expect("the crowd has gone")), alice(1)).await;
}
