use leasehold::{LockRuntime, error::StoreErrorKind::Config};
use leasehold_testkit::RedisServer;
use tokio::task::JoinSet;

use super::scene::{assert_says, connect, exists, key, refusal, use_lock};
use crate::support::{matrix::row, wait};

row! {
    password_changed: protected, control;
    fault: "the password is changed and all connections are closed, while 200 tasks ask",
    right: "errors name the login and show no password; few connections are made; all works when it is changed back",
    control: "a task that makes a connection for each try",
}

const ASKS: usize = 200;
/// Two connections for commands, tried again after 50 ms at the earliest, one for renewals, one
/// that listens; and what a busy machine adds.
const DIALS: u64 = 60;
const OLD: &str = "0ld/s3cret";
const NEW: &str = "n3w/s3cret";

fn change(server: &RedisServer, password: &str) {
    server.command(&["CONFIG", "SET", "requirepass", password]);
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
}

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::builder().password(OLD).start();
        let url = server.url_with("", OLD, 0);
        let (locks, others) = (connect(&url).await, connect(&url).await);
        let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
        let waits = others.lock("a").expect("a name").acquire().wait_forever();
        let waiter = tokio::spawn(waits);
        wait::until("it waits", || exists(&server, &key("a", "queue"))).await;

        change(&server, NEW);
        let dialed = || server.told("stats", "total_connections_received");
        let before = dialed();
        let told = wait::soon("the waiter is told", waiter).await.expect("no panic");
        assert_login(&refusal(told));
        let told = ask(&locks).await;
        let dials = dialed() - before;
        assert!(told >= ASKS / 2, "{told} told of the login");
        assert!(dials <= DIALS, "{dials} connections");

        change(&server, OLD);
        // What was refused a moment ago is not tried again at once.
        let back = || async { locks.lock("b").expect("a name").try_acquire().await.ok() };
        let patience = leasehold_testkit::Patience::of(wait::CEILING);
        drop(patience.until_async(back).await.expect("it goes on"));
        assert!(guard.is_held());
        guard.release().await.expect("held to the end");
        use_lock(&others, "a").await;
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{told} of {ASKS} errors name the login, {dials} connections; went on")
    })
}

/// Asks for many locks at once; returns how often it was told about the login.
async fn ask(locks: &LockRuntime) -> usize {
    let mut asks = JoinSet::new();
    for number in 0..ASKS {
        let lock = locks.lock(format!("b/{number}")).expect("a name");
        asks.spawn(async move { refusal(lock.try_acquire().await) });
    }
    let errors = wait::soon("errors", asks.join_all()).await;
    errors.iter().for_each(assert_login);
    errors.iter().filter(|error| error.kind() == Config).count()
}

fn assert_login(error: &leasehold::error::StoreError) {
    // A connection that was closed under a command is told once, as what it is.
    if error.kind() == Config {
        assert_says(error, Config, &["give the address a user and password"]);
    } else {
        assert!(error.kind().is_transient(), "{error}");
    }
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(OLD) && !shown.contains(NEW), "{shown}");
}

fn control() -> String {
    let server = RedisServer::builder().password(OLD).start();
    let client = redis::Client::open(server.url_with("", OLD, 0)).expect("an address");
    change(&server, NEW);
    let dialed = || server.told("stats", "total_connections_received");
    let before = dialed();
    assert!((0..ASKS).all(|_| client.get_connection().is_err()), "it logs in");
    let dials = dialed() - before;
    assert!(dials >= ASKS as u64, "{dials} connections");
    format!("{ASKS} acquires make {dials} connections")
}
