//! Passwords that change while locks are held.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold::{
    LockRuntime,
    error::{AcquireError, StoreError, StoreErrorKind},
    fencing::{FenceGate, GateError, RedisGate},
    redis::{Credentials, CredentialsProvider, RedisConfig, RedisPool},
};
use leasehold_redis::CredentialsFuture;
use leasehold_testkit::{Patience, RedisServer};

use super::{names, refusal, use_lock};
use crate::support::{lease, patient, wait};

/// The place where a service finds its password: the present one, or nothing.
#[derive(Clone, Default)]
struct Vault {
    password: Arc<Mutex<Option<String>>>,
    asked: Arc<AtomicUsize>,
}

impl Vault {
    fn put(&self, password: Option<&str>) {
        *self.password.lock().expect("no panic") = password.map(Into::into);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl CredentialsProvider for Vault {
    fn credentials(&self) -> CredentialsFuture<'_> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            tokio::task::yield_now().await;
            let password = self.password.lock().expect("no panic").clone();
            Ok(Credentials::new("app", password.ok_or("the vault is sealed")?))
        })
    }
}

/// Lets `app` in with this password alone, and ends its connections.
fn rotate(server: &RedisServer, password: &str) {
    let password = format!(">{password}");
    server.command(&["ACL", "SETUSER", "app", "on", "resetpass", &password]);
    server.command(&["ACL", "SETUSER", "app", "~*", "&*", "+@all"]);
    server.command(&["CLIENT", "KILL", "USER", "app"]);
}

fn remaining(server: &RedisServer) -> Duration {
    lease::left(server, "leasehold:{held}:lease").unwrap_or_default()
}

#[tokio::test]
async fn leases_survive_a_password_that_changes() {
    let server = RedisServer::builder().tcp().start();
    let vault = Vault::default();
    vault.put(Some("s3cret-0"));
    rotate(&server, "s3cret-0");
    let builder = LockRuntime::builder().ttl(Duration::from_secs(20)).credentials(vault.clone());
    let locks = builder.connect(&server.url()).await.expect("a password");
    let held = locks.lock("held").expect("a name").acquire().await.expect("a lease");
    let channels = || server.query::<Vec<String>>(&["PUBSUB", "CHANNELS", "leasehold:*"]);
    wait::until("a subscription", || channels().len() == 1).await;
    for password in ["s3cret-1", "s3cret-2"] {
        let asked = vault.asked();
        vault.put(Some(password));
        rotate(&server, password);
        let mut least = remaining(&server);
        let renewed = || {
            let now = remaining(&server);
            least = least.min(now);
            now > least + Duration::from_secs(1)
        };
        wait::until("a renewal with the new password", renewed).await;
        // Every kind of connection is made anew: commands, renewals, the pool, the subscription.
        use_lock(&locks).await;
        wait::until("a subscription", || channels().len() == 1).await;
        assert!(held.is_held());
        assert!(vault.asked() >= asked + 4, "asked {} times", vault.asked() - asked);
    }
    held.release().await.expect("held to the end");
    assert!(!format!("{locks:?}").contains("s3cret"));
}

/// The control: with the password of the address the lease is lost.
#[tokio::test]
async fn leases_are_lost_with_a_password_that_stays() {
    let server = RedisServer::builder().tcp().start();
    rotate(&server, "s3cret-0");
    let builder = LockRuntime::builder().ttl(Duration::from_secs(2));
    let locks = builder.connect(&server.url_with("app", "s3cret-0", 0)).await.expect("a password");
    let held = locks.lock("held").expect("a name").acquire().await.expect("a lease");
    rotate(&server, "s3cret-1");
    wait::soon("the loss", held.lost()).await;
    let error = locks.lock("other").expect("a name").acquire().await.expect_err("an old password");
    let AcquireError::Store(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

#[tokio::test]
async fn a_provider_that_fails_is_named_and_asked_again() {
    let server = RedisServer::builder().tcp().start();
    rotate(&server, "s3cret");
    let vault = Vault::default();
    let builder = || patient::builder().credentials(vault.clone());
    assert!(!format!("{:?}", builder()).contains("s3cret"));
    let (kind, text) = refusal(builder(), &server.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
    names(&text, &["credentials provider failed", "the vault is sealed", "127.0.0.1"]);
    vault.put(Some("s3cret-old"));
    let (kind, text) = refusal(builder(), &server.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
    names(&text, &["refused what the credentials provider gave", "asked again"]);

    let locks = builder().connect_lazy(&server.url()).expect("good settings");
    let lock = locks.lock("a").expect("a name");
    lock.try_acquire().await.expect_err("an old password");
    vault.put(Some("s3cret"));
    let acquire = || async { lock.acquire().await.ok() };
    let guard = Patience::of(wait::CEILING).until_async(acquire).await.expect("a lease");
    guard.release().await.expect("held to the end");
    use_lock(&locks).await;
}

#[tokio::test]
async fn a_gate_and_a_database_have_the_credentials_too() {
    let server = RedisServer::builder().tcp().start();
    rotate(&server, "s3cret-0");
    let vault = Vault::default();
    vault.put(Some("s3cret-0"));
    let url = server.url_with("nobody", "nothing", 2);
    let from_vault = {
        let vault = vault.clone();
        move || {
            let vault = vault.clone();
            async move { vault.credentials().await }
        }
    };
    let locks = patient::builder().credentials(from_vault).connect(&url).await.expect("a vault");
    let guard = locks.lock("held").expect("a name").acquire().await.expect("a lease");
    let config = RedisConfig::new(&url).expect("an address").credentials(vault.clone());
    let gate = RedisGate::new(RedisPool::new(&config).expect("good settings"));
    gate.admit("orders:1", guard.stamp()).await.expect("the newest fence");
    rotate(&server, "s3cret-1");
    let error = store_error(gate.admit("orders:1", guard.stamp()).await);
    names(&error.to_string(), &["refused what the credentials provider gave"]);
    assert!(error.is_answer(), "the server itself refused it: {error:?}");
    vault.put(Some("s3cret-1"));
    gate.admit("orders:1", guard.stamp()).await.expect("the new password");
    let keyspace: String = server.query(&["INFO", "keyspace"]);
    assert!(keyspace.contains("db2:") && !keyspace.contains("db0:"), "{keyspace}");
}

fn store_error<T: std::fmt::Debug>(outcome: Result<T, GateError>) -> StoreError {
    match outcome {
        Err(GateError::Store(error)) => error,
        other => panic!("no failure of the server: {other:?}"),
    }
}

/// How a provider behaves that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Fine,
    Hanging,
    Panicking,
}

/// A provider in a mood that changes.
fn moody(mood: &Arc<Mutex<Mood>>) -> impl CredentialsProvider + use<> {
    let mood = Arc::clone(mood);
    move || {
        let mood = *mood.lock().expect("no panic");
        async move {
            match mood {
                Mood::Fine => Ok(Credentials::new("app", "s3cret")),
                Mood::Hanging => std::future::pending().await,
                Mood::Panicking => panic!("the provider is broken"),
            }
        }
    }
}

/// A pool of one connection: a provider that hangs must give the only place back.
#[tokio::test]
async fn a_provider_that_hangs_or_panics_costs_a_pool_no_place() {
    let server = RedisServer::builder().tcp().start();
    rotate(&server, "s3cret");
    let mood = Arc::new(Mutex::new(Mood::Hanging));
    let config = RedisConfig::new(&server.url()).expect("an address").credentials(moody(&mood));
    // A call gives up well before the provider has used up its time.
    let config = config.connect_timeout(Duration::from_millis(400)).pool_size(1);
    let gate = RedisGate::new(RedisPool::new(&config).expect("good settings"));
    let locks = patient::builder().embedded().expect("good settings");
    let guard = locks.lock("held").expect("a name").acquire().await.expect("a lease");
    for (broken, words) in [
        (Mood::Hanging, "the credentials provider did not answer"),
        (Mood::Panicking, "the credentials provider panicked"),
    ] {
        *mood.lock().expect("no panic") = broken;
        for _ in 0..3 {
            let error = store_error(gate.admit("orders:1", guard.stamp()).await);
            assert_eq!(error.kind(), StoreErrorKind::Definite, "{error}");
            names(&error.to_string(), &[words]);
        }
        *mood.lock().expect("no panic") = Mood::Fine;
        let admitted = || async { gate.admit("orders:1", guard.stamp()).await.ok() };
        let admitted = Patience::of(wait::CEILING).until_async(admitted).await;
        assert!(admitted.is_some(), "{broken:?}: its place in the pool is free again");
        server.command(&["CLIENT", "KILL", "USER", "app"]);
    }
}

#[tokio::test]
async fn a_provider_that_hangs_or_panics_is_told_as_such() {
    let server = RedisServer::builder().tcp().start();
    for (broken, words) in [
        (Mood::Hanging, "the credentials provider did not answer"),
        (Mood::Panicking, "the credentials provider panicked"),
    ] {
        let mood = Arc::new(Mutex::new(broken));
        let builder = LockRuntime::builder().credentials(moody(&mood));
        let builder = builder.connect_timeout(Duration::from_millis(200));
        let (kind, text) = refusal(builder, &server.url()).await;
        assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
        names(&text, &[words, "asked again"]);
        assert!(!text.contains("tokio"), "{text}");
    }
}
