//! Which server is taken for the master: the one that most Sentinels name, and no other.

use std::time::Duration;

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    error::{ConnectError, StoreErrorKind},
    fencing::FenceGate,
};
use leasehold_testkit::{
    RedisServer,
    sentinel::{Sentinel, SentinelGroup},
};

use crate::support::{patient, storage, wait};

/// The address of some Sentinels of a group.
fn address<'a>(sentinels: impl IntoIterator<Item = &'a Sentinel>, master: &str) -> String {
    let hosts = sentinels.into_iter().map(|one| format!("127.0.0.1:{}", one.port()));
    format!("redis+sentinel://{}/{master}", hosts.collect::<Vec<_>>().join(","))
}

/// A runtime that gives up soon.
fn impatient() -> LockRuntimeBuilder {
    LockRuntime::builder().connect_timeout(Duration::from_secs(2))
}

async fn take(locks: &LockRuntime, name: &str) {
    let lock = locks.lock(name).expect("a name");
    let guard = wait::soon("a free lock", lock.acquire()).await.expect("a lease");
    guard.release().await.expect("a lease that was held to the end");
}

fn holds(server: &RedisServer, name: &str) -> bool {
    server.query(&["EXISTS", &format!("leasehold:{{{name}}}:lease")])
}

async fn refused(url: &str) -> (StoreErrorKind, String) {
    match impatient().connect(url).await.expect_err("nobody to believe") {
        ConnectError::Store(error) => (error.kind(), error.to_string()),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn most_sentinels_are_believed_whatever_the_others_do() {
    let group = SentinelGroup::start();
    let [first, second, third] = group.sentinels() else { panic!("three Sentinels") };

    // A port where nobody listens stands first.
    let dead = format!("127.0.0.1:1,{}", &group.url()["redis+sentinel://".len()..]);
    let locks =
        impatient().connect(&*format!("redis+sentinel://{dead}")).await.expect("three of four");
    take(&locks, "dead").await;
    assert!(holds(group.master(), "dead"));

    let (kind, said) = refused(&address(group.sentinels(), "unknown")).await;
    assert_eq!(kind, StoreErrorKind::Config);
    assert!(said.contains("know no master named `unknown`"), "{said}");

    let port = group.master().port().expect("a port");
    let (kind, said) = refused(&format!("redis+sentinel://127.0.0.1:{port}/leasehold")).await;
    assert_eq!(kind, StoreErrorKind::Config);
    assert!(said.contains("is no Sentinel") && said.contains("26379"), "{said}");

    // One names another server, which says that it is a master.
    let other = RedisServer::builder().tcp().start();
    let port = other.port().expect("a port").to_string();
    first.command(&["SENTINEL", "REMOVE", SentinelGroup::MASTER]);
    first.command(&["SENTINEL", "MONITOR", SentinelGroup::MASTER, "127.0.0.1", &port, "2"]);
    let locks = patient::builder().connect(&group.url()).await.expect("two of three agree");
    take(&locks, "lie").await;
    assert!(holds(group.master(), "lie") && !holds(&other, "lie"));

    // With one that hangs, the other two do not agree, and nobody is believed anew.
    second.pause();
    let (kind, said) = refused(&group.url()).await;
    assert_eq!(kind, StoreErrorKind::Definite);
    assert!(said.contains("too few Sentinels name one master"), "{said}");
    // Who knows the master already goes on.
    take(&locks, "known").await;
    second.resume();

    // Two that agree are all of two.
    let honest = address([second, third], SentinelGroup::MASTER);
    let locks = patient::builder().connect(&honest).await.expect("they agree");
    take(&locks, "honest").await;
    assert!(holds(group.master(), "honest"));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "they are asked from time to time")]
async fn each_sentinel_is_asked_on_one_connection() {
    let group = SentinelGroup::start();
    let locks = patient::builder().connect(&group.url()).await.expect("a master");
    take(&locks, "a").await;
    let connections = |one: &Sentinel| one.told("stats", "total_connections_received");
    let before: Vec<_> = group.sentinels().iter().map(connections).collect();
    tokio::time::sleep(Duration::from_secs(4)).await;
    for (sentinel, before) in group.sentinels().iter().zip(before) {
        // One is that of the question itself, and other Sentinels may connect.
        let new = connections(sentinel) - before;
        assert!(new <= 2, "{new} new connections");
    }
}

#[tokio::test]
async fn the_sentinels_may_ask_for_a_login_of_their_own() {
    let group = SentinelGroup::start();
    let rights = "-@all +sentinel|get-master-addr-by-name +subscribe resetchannels &+switch-master";
    let rights: Vec<_> = rights.split(' ').collect();
    for sentinel in group.sentinels() {
        let user = ["ACL", "SETUSER", "app", "reset", "on", ">ses@me"];
        sentinel.command(&[&user[..], &rights[..]].concat());
        sentinel.command(&["ACL", "SETUSER", "default", "off"]);
    }
    let url = group.url();
    let with_login = format!("{url}?sentinel_user=app&sentinel_pass=ses%40me");
    let locks = patient::builder().connect(&with_login);
    take(&locks.await.expect("the right password"), "login").await;

    for login in ["", "?sentinel_user=app&sentinel_pass=s3cret"] {
        let (kind, said) = refused(&format!("{url}{login}")).await;
        assert_eq!(kind, StoreErrorKind::Config, "{said}");
        assert!(said.contains("Sentinels refuse the login"), "{said}");
        assert!(said.contains("?sentinel_user=…&sentinel_pass=…"), "{said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

/// The address is right: nobody is asked to write another one.
#[tokio::test]
async fn a_master_that_is_a_replica_now_is_told_as_what_the_sentinels_will_mend() {
    let group = SentinelGroup::start();
    let locks = impatient().connect(&group.url()).await.expect("a master");
    take(&locks, "a").await;
    let master = group.master();
    let port = master.port();
    group.sentinels().iter().for_each(Sentinel::pause);
    master.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let lock = locks.lock("a").expect("a name");
    let said = lock.try_acquire().await.expect_err("it takes no writes").to_string();
    assert!(said.contains("READONLY"), "{said}");
    assert!(said.contains("the Sentinels are about to name another master"), "{said}");
    assert!(!said.contains("write the master's address"), "{said}");
    names_the_master(&said, port);
    group.sentinels().iter().for_each(Sentinel::resume);
}

fn names_the_master(said: &str, port: Option<u16>) {
    let port = port.expect("a port");
    let place = format!(
        "(at 127.0.0.1:{port}, which the Sentinels name as the master of redis+sentinel://"
    );
    assert!(said.contains(&place), "{said}");
}

/// The Sentinels answer: whom an operator has to look at is the master.
#[tokio::test]
async fn a_refusal_by_the_master_names_it() {
    let group = SentinelGroup::start();
    let weak = ["ACL", "SETUSER", "weak", "on", ">word", "~*", "+@connection", "+role"];
    group.master().command(&weak);
    let port = group.master().port();
    let locks = patient::builder().embedded().expect("good settings");
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    for (login, words) in [("nobody:wrong@", "WRONGPASS"), ("weak:word@", "no permissions")] {
        let url = group.url_with(login);
        let (kind, said) = refused(&url).await;
        assert_eq!(kind, StoreErrorKind::Config, "{said}");
        assert!(said.contains(words), "{said}");
        names_the_master(&said, port);

        let admitted = storage::gate_at(&url).admit("orders", guard.stamp()).await;
        let said = admitted.expect_err("a refusal").to_string();
        assert!(said.contains(words), "{said}");
        names_the_master(&said, port);
    }
}

/// Each look asks all Sentinels, and waits for the one before it.
#[tokio::test]
async fn a_crowd_at_a_new_gate_looks_once() {
    const CALLS: usize = 300;
    let group = SentinelGroup::start();
    let commands = |one: &Sentinel| one.told("stats", "total_commands_processed");
    let before: u64 = group.sentinels().iter().map(commands).sum();
    storage::crowd_at(&group.url(), CALLS).await;
    let made = group.sentinels().iter().map(commands).sum::<u64>() - before;
    // They say hello to each other meanwhile.
    assert!(made < 150, "{made} commands for {CALLS} calls");
}
