//! Runtimes that are made before their server is there.

use leasehold::{
    LockRuntime,
    error::{AcquireError, StoreErrorKind},
    redis::client::Client,
};
use leasehold_testkit::{Patience, RedisServer};

use super::use_lock;
use crate::support::{patient, wait};

/// What a try that nobody answered failed with.
fn kind_of(error: &AcquireError) -> Option<StoreErrorKind> {
    match error {
        AcquireError::Store(error) => Some(error.kind()),
        AcquireError::Unavailable(outage) => Some(outage.error.kind()),
        _ => None,
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_use() {
    let server = RedisServer::start();
    let locks = LockRuntime::connect_lazy(&server.url()).expect("good settings");
    let lock = locks.lock("a").expect("a name");
    let clients = || server.query::<String>(&["CLIENT", "LIST", "TYPE", "normal"]);
    let named = || clients().lines().filter(|line| line.contains("name=leasehold")).count();
    assert_eq!(named(), 0, "{}", clients());
    use_lock(&locks).await;
    assert!(named() > 0, "{}", clients());
    drop(lock);
}

#[tokio::test]
async fn an_acquire_waits_for_a_server_that_starts_later() {
    let server = RedisServer::builder().tcp().start();
    server.kill();
    let locks = patient::builder().connect_lazy(&server.url()).expect("good settings");
    let lock = locks.lock("a").expect("a name");
    let error = lock.try_acquire().await.expect_err("nobody is there");
    assert_eq!(kind_of(&error), Some(StoreErrorKind::Definite), "{error}");
    let waiting = tokio::spawn(lock.acquire().wait(wait::CEILING));
    // Until then it fails again and again; nothing tells when it has, and the test holds either
    // way.
    tokio::task::yield_now().await;
    server.restart();
    let guard = wait::soon("a lease", waiting).await.expect("a task").expect("a lease");
    guard.release().await.expect("held to the end");
    use_lock(&locks).await;
}

#[tokio::test]
async fn what_is_missing_is_told_by_every_acquire_until_it_is_mended() {
    let server = RedisServer::builder().tcp().start();
    let rights = |more: &str| {
        let user = ["ACL", "SETUSER", "app", "reset", "on", ">s3cret", "~leasehold:*"];
        server.command(&[user.as_slice(), &["&leasehold:*", "+@all", more]].concat());
    };
    rights("-subscribe");
    let locks = LockRuntime::connect_lazy(&server.url_with("app", "s3cret", 0)).expect("settings");
    let lock = locks.lock("a").expect("a name");
    for _ in 0..3 {
        let error = lock.acquire().wait(wait::CEILING).await.expect_err("a right is missing");
        let AcquireError::Store(error) = error else { panic!("{error}") };
        assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
        let said = error.to_string();
        for word in ["lock \"a\"", "grant the Redis user", "127.0.0.1"] {
            assert!(said.contains(word), "no {word:?} in {said}");
        }
        let error = locks.inspect("a").await.expect_err("a right is missing");
        assert!(error.to_string().contains("grant the Redis user"), "{error}");
    }
    assert_eq!(server.query::<u64>(&["EXISTS", "leasehold:{a}:lease"]), 0, "no lock was touched");
    rights("+subscribe");
    let acquire = || async { lock.acquire().await.ok() };
    let guard = Patience::of(wait::CEILING).until_async(acquire).await;
    guard.expect("the same runtime works").release().await.expect("held to the end");
}

#[tokio::test]
async fn a_crowd_checks_a_server_once() {
    const TASKS: usize = 50;
    let server = RedisServer::start();
    server.command(&["CONFIG", "RESETSTAT"]);
    let locks = patient::builder().connect_lazy(&server.url()).expect("good settings");
    let crowd: Vec<_> = (0..TASKS)
        .map(|n| {
            let lock = locks.lock(format!("crowd/{n}")).expect("a name");
            tokio::spawn(async move { lock.acquire().await.expect("a lease").release().await })
        })
        .collect();
    for task in crowd {
        task.await.expect("a task").expect("held to the end");
    }
    // The check is the only one to subscribe besides the runtime itself.
    let calls = server.calls("subscribe");
    assert!((1..=2).contains(&calls), "{calls}");
}

#[tokio::test]
async fn a_client_or_its_settings_are_an_address() {
    let server = RedisServer::builder().tcp().start();
    server.command(&["ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all"]);
    server.command(&["ACL", "SETUSER", "default", "off"]);
    let client = Client::open(server.url_with("app", "s3cret", 2)).expect("an address");
    let info = client.get_connection_info().clone();
    use_lock(&LockRuntime::connect(&client).await.expect("a client")).await;
    use_lock(&LockRuntime::connect(info).await.expect("its settings")).await;
    use_lock(&LockRuntime::connect_lazy(client).expect("good settings")).await;
    let keyspace: String = server.query(&["INFO", "keyspace"]);
    assert!(keyspace.contains("db2:") && !keyspace.contains("db0:"), "{keyspace}");
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn certificates_of_a_client_are_used() {
    use leasehold::redis::client::TlsCertificates;
    let server = RedisServer::builder().tls().start();
    let ca = server.ca_pem().expect("an authority").as_bytes().to_vec();
    // The process has a provider of cryptography once a runtime used TLS.
    let trusting = patient::builder().tls_root_ca(ca.clone());
    use_lock(&trusting.connect(&server.url()).await.expect("a server with TLS")).await;
    let certificates = TlsCertificates { client_tls: None, root_cert: Some(ca) };
    let client = Client::build_with_tls(server.url(), certificates).expect("a certificate");
    use_lock(&patient::builder().connect(client).await.expect("a client with TLS")).await;
}
