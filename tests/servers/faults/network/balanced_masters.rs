use std::time::Duration;

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{FaultProxy, RedisServer, proxy::Links};

use crate::{
    faults::{failover::overlap, server::scene},
    support::{lease, matrix::row, patient, wait},
};

row! {
    balanced_masters: protected, control;
    fault: "one address leads to two independent masters, which take turns with new connections",
    right: "connect() is refused, a running runtime refuses while both live; a restart or a failover is no such case",
    control: "a user who may not run INFO, so that the servers are not told apart",
}

const TTL: Duration = Duration::from_secs(3);
/// No lease of the control is renewed: a renewal may reach the other server, which has no such lease.
const LONG: Duration = Duration::from_secs(3_600);
const SAYS: &str = "the address leads to two masters";

fn protected() -> String {
    scene::run(async {
        let (one, other) = (RedisServer::start(), RedisServer::start());
        refused_at_connect(&one, &other).await;
        refused_while_both_live(one, &other).await;
        goes_on_after_a_failover(&other).await;
        "refused at connect, and by a running runtime until one was gone; went on after a failover"
            .into()
    })
}

async fn refused_at_connect(one: &RedisServer, other: &RedisServer) {
    let proxy = FaultProxy::between(&[one, other]);
    let connecting = patient::builder().connect(&proxy.url()).await;
    let refused = connecting.expect_err("two masters").to_string();
    for words in [SAYS, "run_id", "give each master an address of its own", "127.0.0.1"] {
        assert!(refused.contains(words), "{words:?} is not said: {refused}");
    }
}

/// The address leads to the other one from now on, and the first one lives.
async fn refused_while_both_live(one: RedisServer, other: &RedisServer) {
    let proxy = FaultProxy::before(&one);
    let locks = scene::connect(&proxy.url(), TTL).await;
    let held = scene::take(&locks, "held").await;
    let channels = || one.query::<Vec<String>>(&["PUBSUB", "CHANNELS"]).len();
    wait::until("it has subscribed at the first one", || channels() > 0).await;
    proxy.lead_to(&[other]);
    // The next subscription is made at the other one.
    wait::until("it subscribes", || proxy.reset_links(Links::Subscribed) > 0).await;
    wait::soon("a refusal", refused(&locks)).await;
    for _ in 0..3 {
        let tried = locks.lock("other").expect("a name").try_acquire().await;
        let refused = tried.expect_err("two masters").to_string();
        assert!(refused.contains(SAYS), "{refused}");
    }
    wait::soon("the loss", held.lost()).await;
    assert!(lease::held(other).is_empty(), "{:?}", lease::held(other));
    drop(one);
    let guard = wait::soon("a lease", granted(&locks)).await;
    assert_eq!(lease::held(other), ["leasehold:{other}:lease"]);
    guard.release().await.expect("held to the end");
}

/// Commands that were sent before it is seen are answered by the first server.
async fn refused(locks: &LockRuntime) {
    loop {
        match locks.lock("other").expect("a name").try_acquire().await {
            Ok(Some(guard)) => drop(guard.release().await),
            Ok(None) => {}
            Err(error) if error.to_string().contains(SAYS) => return,
            Err(error) => println!("on the way: {error}"),
        }
        wait::a_moment().await;
    }
}

async fn granted(locks: &LockRuntime) -> Guard {
    loop {
        if let Ok(Some(guard)) = locks.lock("other").expect("a name").try_acquire().await {
            return guard;
        }
        wait::a_moment().await;
    }
}

/// A server is gone, and another one is at its address.
async fn goes_on_after_a_failover(other: &RedisServer) {
    let first = RedisServer::start();
    let proxy = FaultProxy::before(&first);
    let locks = scene::connect(&proxy.url(), TTL).await;
    scene::take(&locks, "held").await.release().await.expect("held to the end");
    proxy.lead_to(&[other]);
    drop(first);
    scene::take(&locks, "held").await.release().await.expect("held to the end");
    locks.inspect("held").await.expect("the pool goes along");
}

fn control() -> String {
    scene::run(async {
        let servers = [RedisServer::start(), RedisServer::start()];
        for server in &servers {
            let user = ["ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all", "-info"];
            server.command(&user);
        }
        let proxy = FaultProxy::before(&servers[0]);
        let url = proxy.url_with("app", "secret", 0);
        let (_one, first) = process(&url).await;
        // The turns of a balancer, but not left to how many connections a process makes.
        proxy.lead_to(&[&servers[1]]);
        let (_other, second) = process(&url).await;
        let by = overlap::of(&first, &second).as_millis();
        format!("two holders believed for {by} ms at least")
    })
}

async fn process(url: &str) -> (LockRuntime, Guard) {
    let locks = scene::connect(url, LONG).await;
    let guard = scene::take(&locks, "a").await;
    (locks, guard)
}
