//! A holder that is stopped looks dead to those who wait, before its lease ends.

use std::{future::pending, time::Duration};

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::RedisServer;

use crate::support::{child, patient, wait};

/// Its last third is far longer than a look takes.
const TTL: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_holder_that_was_stopped_is_told_as_one_that_may_be_dead() {
    let server = RedisServer::start();
    let mut child = child::spawn(module_path!(), "holder", &[("url", &server.url())]);
    child.wait_for_line("held", wait::CEILING);
    let locks = patient::builder().connect(&server.url()).await.expect("the server answers");
    let lock = locks.lock("a").expect("a name");
    let waiting = tokio::spawn(lock.acquire().wait_forever());
    let text_after_a_wait = async || match lock.acquire().wait(Duration::from_millis(100)).await {
        Ok(_) => panic!("the lease has ended, and nobody was told before"),
        Err(error) => error.to_string(),
    };
    let is_told = |text: &str| text.contains("its process may be dead or stopped");
    let alive = text_after_a_wait().await;
    assert!(!is_told(&alive), "{alive}");
    let stopped_at = SystemClock.now();
    child.stop();
    let text = loop {
        let text = text_after_a_wait().await;
        if is_told(&text) {
            break text;
        }
    };
    // Its last renewal was a third of its ttl before at most.
    assert!(SystemClock.now().saturating_since(stopped_at) > TTL / 4, "{text}");
    waiting.abort();
}

#[test]
fn child_program() {
    if child::role().is_some() {
        child::run(async {
            let locks = patient::builder().ttl(TTL).connect(&child::arg("url")).await;
            let lock = locks.expect("the server answers").lock("a").expect("a name");
            let _guard = lock.acquire().await.expect("it is free");
            println!("held");
            pending::<()>().await;
        });
    }
}
