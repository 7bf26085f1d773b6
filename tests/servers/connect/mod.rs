//! Connecting to real servers: every kind of address, and a clear error for all that can be wrong.

mod commands;
mod credentials;
mod groups;
mod lazy;
mod pools;
mod slow;
mod strangers;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use leasehold::{
    Fence, LockRuntime, LockRuntimeBuilder,
    error::{ConnectError, StoreErrorKind},
    time::{Clock, SystemClock},
};
use leasehold_testkit::{RedisServer, Reply, ScriptedPeer};

use crate::support::patient;

/// Generous: the defaults give up after two or four seconds.
const SECONDS: Duration = Duration::from_secs(10);

/// Takes and releases a lock, and looks at it in between.
pub(crate) async fn use_lock(locks: &LockRuntime) -> Fence {
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    locks.inspect("a").await.expect("an answer");
    // By a connection of the pool.
    let mut list = locks.list("a*").expect("a pattern");
    while let Some(listed) = list.next().await {
        listed.expect("an answer");
    }
    let fence = guard.fence();
    guard.release().await.expect("held to the end");
    fence
}

async fn works(builder: LockRuntimeBuilder, url: &str) -> LockRuntime {
    let locks = builder.connect(url).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    use_lock(&locks).await;
    locks
}

/// The kind and text of the refusal to connect, which has to be fit for people.
pub(crate) async fn refusal(
    builder: LockRuntimeBuilder,
    url: &str,
) -> (Option<StoreErrorKind>, String) {
    let started = SystemClock.now();
    let error = builder.connect(url).await.expect_err("a runtime that cannot work");
    let took = SystemClock.now().saturating_since(started);
    assert!(took < SECONDS, "{took:?}: {error}");
    let kind = match &error {
        ConnectError::Store(error) => Some(error.kind()),
        _ => None,
    };
    let text = error.to_string();
    assert!(!text.contains('\n') && !text.contains("s3cret"), "{text}");
    let shown = format!("{error:?}");
    assert!(!shown.contains("s3cret"), "{shown}");
    (kind, text)
}

pub(crate) fn names(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

#[tokio::test]
async fn a_port_and_a_unix_socket() {
    let builder = patient::builder;
    let server = RedisServer::builder().tcp().start();
    works(builder(), &server.url()).await;
    let socket = server.socket().display();
    works(builder(), &format!("redis+unix://{socket}")).await;
    works(builder(), &format!("unix://{socket}")).await;
}

#[tokio::test]
async fn a_database_of_its_own() {
    let server = RedisServer::builder().tcp().start();
    for db in [0, 3] {
        works(patient::builder(), &server.url_with("", "", db)).await;
    }
    let keyspace: String = server.query(&["INFO", "keyspace"]);
    names(&keyspace, &["db0:keys=1,", "db3:keys=1,"]);
}

#[tokio::test]
async fn a_user_with_a_password() {
    for server in [RedisServer::builder().tcp().start(), RedisServer::start()] {
        let rights = ["~leasehold:*", "&leasehold:*", "+@all", "-@admin", "-info"];
        let user = ["ACL", "SETUSER", "app", "reset", "on", ">s3cret:/@", "-@all"];
        server.command(&[user.as_slice(), rights.as_slice()].concat());
        server.command(&["ACL", "SETUSER", "default", "off"]);
        let locks = works(patient::builder(), &server.url_with("app", "s3cret:/@", 0)).await;
        assert!(!format!("{locks:?}").contains("s3cret"), "{locks:?}");
    }
    let server = RedisServer::builder().password("s3cret").start();
    works(patient::builder(), &server.url_with("", "s3cret", 1)).await;
}

#[tokio::test]
async fn connections_have_the_name_of_their_service() {
    let server = RedisServer::start();
    let locks = works(patient::builder().service("billing"), &server.url()).await;
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    // Commands, inspections, and at the first renewal the connection for those.
    let list = || server.query::<String>(&["CLIENT", "LIST"]);
    let named = || list().lines().filter(|line| line.contains("name=leasehold:billing ")).count();
    assert!(named() >= 2, "{}", list());
    let mine = list().lines().filter(|line| !line.contains("user=testkit")).count();
    assert_eq!(named(), mine, "{}", list());
    drop(guard);
    let odd = works(patient::builder().service("a b\n"), &server.url()).await;
    names(&list(), &["name=leasehold:a-b- "]);
    drop(odd);
}

#[tokio::test]
async fn texts_that_are_no_address() {
    // More of them, with what is said of each, in `bad_input.rs`.
    for url in ["", "localhost", "http://app:s3cret@h", "redis://app:s3cret@h:99999"] {
        let (kind, text) = refusal(patient::builder(), url).await;
        assert_eq!(kind, None);
        names(&text, &["the Redis address", "write redis://"]);
    }
}

#[tokio::test]
async fn nobody_there() {
    // The port of a server that is not there any more.
    let server = RedisServer::builder().tcp().start();
    let port = server.port().expect("a port");
    drop(server);
    let url = format!("redis://app:s3cret@127.0.0.1:{port}");
    let (kind, text) = refusal(LockRuntime::builder(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Definite));
    names(&text, &["cannot connect", &format!("127.0.0.1:{port}"), "check that the server runs"]);

    let (_, text) = refusal(LockRuntime::builder(), "redis+unix:///tmp/lh-none/s").await;
    names(&text, &["cannot connect", "/tmp/lh-none/s", "path of its socket"]);
    let (_, text) = refusal(LockRuntime::builder(), "redis://no-such-host.invalid:1").await;
    names(&text, &["no-such-host.invalid:1", "host of the address"]);
}

#[tokio::test]
async fn somebody_who_does_not_answer() {
    let peers = [
        (ScriptedPeer::silent().await, "the server stands still"),
        (ScriptedPeer::closing().await, "may not be a Redis server"),
    ];
    for (peer, advice) in peers {
        let peer = peer.expect("a port");
        let (kind, text) = refusal(LockRuntime::builder(), &peer.url()).await;
        assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
        names(&text, &["connect", advice, &format!("127.0.0.1:{}", peer.port())]);
    }
    let server = RedisServer::builder().tcp().start();
    server.stop_signal();
    let (_, text) = refusal(LockRuntime::builder(), &server.url()).await;
    names(&text, &[&format!("127.0.0.1:{}", server.port().expect("a port"))]);
    server.cont_signal();
}

#[tokio::test]
async fn a_server_that_is_too_old() {
    let table = [("HELLO", Reply::hello("6.0.16", 2)), ("CLIENT", Reply::ok())];
    let peer = ScriptedPeer::of_table(table).await.expect("a port");
    let (kind, text) = refusal(patient::builder(), &peer.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Config));
    names(&text, &["6.0.16", "6.2", &format!("127.0.0.1:{}", peer.port())]);
    assert!(peer.commands().iter().all(|command| !command[0].starts_with("EVAL")));
}

#[tokio::test]
async fn a_login_that_is_missing_or_wrong() {
    let server = RedisServer::builder().tcp().password("right").start();
    let address = format!("127.0.0.1:{}", server.port().expect("a port"));
    for (user, password) in [("", ""), ("", "s3cret"), ("nobody", "s3cret")] {
        let url = server.url_with(user, password, 0);
        let (kind, text) = refusal(patient::builder(), &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &[&address, "give the address a user and password"]);
        // In our words: the server's own advice is about its protocol.
        assert!(!text.contains("HELLO"), "{text}");
        if password.is_empty() {
            names(&text, &["the server asks for a user and password (NOAUTH)"]);
        }
    }
    assert_eq!(server.query::<u64>(&["DBSIZE"]), 0);
}

#[tokio::test]
async fn rights_that_are_missing() {
    let server = RedisServer::builder().tcp().start();
    let address = format!("127.0.0.1:{}", server.port().expect("a port"));
    let url = server.url_with("app", "s3cret", 0);
    // Every command of the scripts in `tests/stores/redis/rights.rs`.
    for missing in ["-evalsha", "-eval", "-set", "resetchannels", "resetkeys"] {
        let user = ["ACL", "SETUSER", "app", "reset", "on", ">s3cret"];
        let rights = ["~leasehold:*", "&leasehold:*", "+@all", missing];
        server.command(&[user.as_slice(), rights.as_slice()].concat());
        server.command(&["SCRIPT", "FLUSH"]);
        let (kind, text) = refusal(patient::builder(), &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{missing}: {text}");
        names(&text, &[&address, "grant the Redis user"]);
        assert_eq!(server.keys_without_ttl(), [""; 0], "{missing}");
    }
    // A database that is not there.
    let url = server.url_with("", "", 99);
    let (kind, text) = refusal(patient::builder(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &[&address, "database number"]);
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn tls_under_a_private_authority() {
    let (server, other) = (RedisServer::builder().tls().start(), RedisServer::builder().tls());
    let ca = server.ca_pem().expect("an authority");
    let address = format!("127.0.0.1:{}", server.port().expect("a port"));
    let trusting = patient::builder().tls_root_ca(ca);
    works(trusting.clone(), &server.url_with("", "", 2)).await;
    works(trusting.own_thread(), &server.url()).await;

    let other = other.start();
    let wrong = patient::builder().tls_root_ca(other.ca_pem().expect("an authority"));
    for builder in [patient::builder(), wrong] {
        let (kind, text) = refusal(builder, &server.url_with("app", "s3cret", 0)).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &[&address, "certificate", "tls_root_ca()"]);
    }
    // Never without TLS where TLS was asked for, nor the other way round.
    let plain = RedisServer::builder().tcp().start();
    let url = plain.url().replace("redis://", "rediss://");
    let (_, text) = refusal(LockRuntime::builder().tls_root_ca(ca), &url).await;
    names(&text, &[&format!("127.0.0.1:{}", plain.port().expect("a port"))]);
    let url = server.url().replace("rediss://", "redis://");
    let (_, text) = refusal(LockRuntime::builder(), &url).await;
    names(&text, &[&address, "expect TLS (rediss://)"]);
    let (_, text) = refusal(LockRuntime::builder().tls_root_ca("no pem"), &server.url()).await;
    names(&text, &["tls_root_ca()", "no certificate in PEM"]);
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn tls_without_the_feature_names_the_feature() {
    let (_, text) = refusal(patient::builder(), "rediss://app:s3cret@127.0.0.1").await;
    names(&text, &["`tls`", "127.0.0.1"]);
}
