//! `health()` beside real servers that are stopped, killed and cut off.

use std::time::Duration;

use leasehold::{
    LockRuntime, Strictness,
    redis::Credentials,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{
    RedisServer,
    proxy::{Direction, FaultProxy},
};

use crate::support::wait;

/// What becomes of a server, or of the way to it.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Stopped,
    Killed,
    CutOff,
}

async fn runtime(url: &str) -> LockRuntime {
    let builder = LockRuntime::builder().strictness(Strictness::Ignore);
    builder.connect(url).await.expect("the server answers")
}

#[tokio::test]
async fn an_idle_runtime_is_red_in_an_outage_and_green_after_it() {
    for fate in [Fate::Stopped, Fate::Killed, Fate::CutOff] {
        let server = RedisServer::builder().tcp().start();
        let proxy = FaultProxy::before(&server);
        let locks = match fate {
            Fate::CutOff => runtime(&proxy.url()).await,
            Fate::Stopped | Fate::Killed => runtime(&server.url()).await,
        };
        assert!(locks.health().is_ready(), "{fate:?}: {}", locks.health());
        match fate {
            Fate::Stopped => server.stop_signal(),
            Fate::Killed => server.kill(),
            Fate::CutOff => proxy.black_hole(Direction::Both),
        }
        wait::until("red", || !locks.health().is_ready()).await;
        let health = locks.health();
        println!("{fate:?}: {health}");
        assert!(health.answering_for.is_none() && health.silent_for.is_some(), "{health:?}");
        match fate {
            Fate::Stopped => server.cont_signal(),
            Fate::Killed => server.restart(),
            Fate::CutOff => proxy.heal(),
        }
        wait::until("green", || locks.health().is_ready()).await;
    }
}

/// The control: a server that answers.
#[tokio::test]
async fn an_idle_runtime_is_green_while_its_server_answers() {
    let server = RedisServer::start();
    let locks = runtime(&server.url()).await;
    let lazy = LockRuntime::connect_lazy(&server.url()).expect("an address");
    assert!(!lazy.health().is_ready(), "nothing was heard so far");
    wait::until("connected by the first question", || lazy.health().is_ready()).await;
    let since = SystemClock.now();
    while SystemClock.now().saturating_since(since) < Duration::from_secs(6) {
        wait::a_moment().await;
    }
    for locks in [locks, lazy] {
        wait::until("green", || locks.health().is_ready()).await;
        assert!(locks.health().error.is_none());
    }
}

/// A service is not to get requests that each fail until somebody mends the server or the settings.
#[tokio::test]
async fn a_server_that_refuses_for_good_is_not_ready_until_it_is_mended() {
    let server = RedisServer::builder().tcp().start();
    server.command(&["ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all", "-evalsha"]);
    let refused = |url: &str| LockRuntime::connect_lazy(url).expect("an address");
    let wrong = refused(&server.url_with("app", "wrong", 0));
    let given = LockRuntime::builder().credentials(|| async { Ok(Credentials::new("app", "old")) });
    let given = given.connect_lazy(&server.url()).expect("an address");
    let denied = refused(&server.url_with("app", "s3cret", 0));
    for locks in [&wrong, &given, &denied] {
        wait::until("the first answer", || locks.health().error.is_some()).await;
        for _ in 0..10 {
            let health = locks.health();
            assert!(!health.is_ready(), "{health}");
            assert!(health.to_string().starts_with("the server refuses; "), "{health}");
            drop(locks.lock("a").expect("a name").try_acquire().await.expect_err("refused"));
        }
    }
    server.command(&["ACL", "SETUSER", "app", "+evalsha"]);
    wait::until("the right was granted", || denied.health().is_ready()).await;
    assert!(denied.health().error.is_none());
}

/// Nothing but its looks tells an idle process how the server is, and an outage that they alone meet would be
/// over never.
#[tokio::test]
async fn an_idle_runtime_needs_no_new_connection_to_be_well() {
    let server = RedisServer::builder().tcp().start();
    let proxy = FaultProxy::before(&server);
    let locks = runtime(&proxy.url()).await;
    let lock = locks.lock("a").unwrap();
    lock.acquire().await.expect("a free lock").release().await.expect("it is held");
    proxy.refuse();
    // Several looks.
    let until = SystemClock.now() + Duration::from_secs(6);
    while SystemClock.now() < until {
        // Asked now and then, it goes on to look.
        let _ = locks.health();
        wait::a_moment().await;
    }
    wait::until("green", || locks.health().is_ready()).await;
    lock.acquire().await.expect("a free lock").release().await.expect("it is held");
}
