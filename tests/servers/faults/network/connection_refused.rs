use std::time::Duration;

use leasehold::{
    LockRuntime,
    error::{AcquireError, ConnectError, StoreErrorKind},
};
use leasehold_testkit::RedisServer;

use super::net::Net;
use crate::support::{matrix::row, patient, wait};

row! {
    connection_refused: protected;
    fault: "no server listens at the address, at start and later",
    right: "an error in bounded time names server, lock and what to do; later all works",
}

fn protected() -> String {
    wait::on_one_thread(async {
        at_start().await;
        later().await;
        "definite errors name server and lock; all goes on".into()
    })
}

async fn at_start() {
    let server = RedisServer::builder().tcp().start();
    server.kill();
    let url = server.url();
    let connecting = LockRuntime::connect(&url);
    let error = wait::soon("connect gives up", connecting).await.expect_err("nobody listens");
    assert!(matches!(&error, ConnectError::Store(why) if why.kind() == StoreErrorKind::Definite));
    assert_says(&error, &[&url, "check that the server runs"]);
    server.restart();
    let locks = patient::builder().connect(&url).await.expect("the server is there");
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    guard.release().await.expect("held to the end");
}

async fn later() {
    let net = Net::start();
    let locks = patient::builder().connect(&net.url()).await.expect("the server answers");
    let lock = locks.lock("orders/42").expect("a name");
    net.proxy.refuse();
    net.proxy.reset_all();
    // The proxy resets those who come.
    let all = ["orders/42", &net.url(), "cannot connect", "it may "];

    // The first one may have been sent before its connection was reset.
    for words in [&all[..3], &all] {
        let error = wait::soon("a try ends", lock.try_acquire()).await.expect_err("no server");
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
        assert_says(&error, words);
    }
    let waiting = lock.acquire().wait(Duration::from_secs(2));
    let error = wait::soon("a wait ends", waiting).await.expect_err("no server");
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    assert_says(&error, &all);
    assert!(net.proxy.counts().refused > 0);

    net.proxy.accept();
    let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
    guard.release().await.expect("held to the end");
    assert_eq!(locks.shutdown(wait::CEILING).await.held, 0);
    net.is_clean_soon();
}

fn assert_says(error: &impl std::fmt::Display, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "no {word:?}: {text}");
    }
}
