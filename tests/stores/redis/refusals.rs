//! Servers in trouble: what they refuse has not run, and what ends a lease is not refused.

use std::{os::unix::net::UnixStream, thread, time::Duration};

use leasehold_core::{
    StoreErrorKind::Definite,
    store::{AcquireAnswer, HoldAnswer, ReleaseAnswer, RenewAnswer},
};
use leasehold_testkit::{
    LockText, Patience, RedisServer,
    contract::{alice, bob, ttl},
};

use super::support::{
    PATIENCE, assert_says, assert_says_of_lock, calls, connect, digest, granted,
    granted_in_the_end, store_on,
};

fn set(server: &RedisServer, key: &str, value: &str) {
    server.command(&["CONFIG", "SET", key, value]);
}

/// Runs a command that takes long on a thread of its own, which ends with the server.
fn apart(
    server: &RedisServer,
    words: &'static [&'static str],
) -> thread::JoinHandle<redis::RedisResult<String>> {
    let client = redis::Client::open(server.url()).expect("the server's address is one");
    thread::spawn(move || {
        redis::cmd(words[0]).arg(&words[1..]).query(&mut client.get_connection()?)
    })
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
    let accepted = || -> u64 {
        let stats: String = server.query(&["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        line.expect("the server counts connections").parse().expect("a number")
    };
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
async fn a_server_that_is_busy_with_a_script_refuses_for_now() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let calls = calls(&store);
    granted(&calls, alice(1)).await;
    set(&server, "lua-time-limit", "10");
    let endless = apart(&server, &["EVAL", "while true do end", "0"]);
    let busy = || async { calls.acquire(alice(1), ttl(60), None).await.err() };
    let error = Patience::of(PATIENCE).until_async(busy).await.expect("the script blocks");
    assert_says_of_lock(&error, Definite, "BUSY", "SCRIPT KILL");
    server.command(&["SCRIPT", "KILL"]);
    assert!(endless.join().expect("the thread ends").is_err());
    granted_in_the_end(&store, alice(1)).await;
}

#[tokio::test]
async fn a_server_that_loads_its_data_refuses_for_now() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    // A millisecond for every key. The server hears clients after every 2 MiB of its file: eight
    // times.
    server.command(&["DEBUG", "POPULATE", "1000", "filler", "16384"]);
    set(&server, "key-load-delay", "1000");
    set(&server, "rdbcompression", "no");
    let reload = apart(&server, &["DEBUG", "RELOAD"]);
    let calls = calls(&store);
    let loading = || async {
        let answer = calls.acquire(bob(1), ttl(60), None).await;
        assert!(!matches!(answer, Ok(AcquireAnswer::Withdrawn)));
        answer.err()
    };
    let error = Patience::of(PATIENCE).until_async(loading).await.expect("the server loads");
    assert_says_of_lock(&error, Definite, "LOADING", "wait until it has");
    reload.join().expect("the thread ends").expect("the server has loaded");
    granted_in_the_end(&store, bob(1)).await;
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
