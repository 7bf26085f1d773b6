use std::time::Duration;

use leasehold::{Guard, LeaseEnd, LossReason, Released};
use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{line, matrix::row, patient, wait};

row! {
    paused_after_a_grant: protected, control;
    fault: "the server is stopped (SIGSTOP) 200 ms after a lease came by a message, for a claim window",
    right: "the lease is held on: its first renewal, within 100 ms, gave it the whole ttl",
    control: "a lease that has no more than its claim window",
}

const TTL: Duration = Duration::from_secs(60);
const CLAIM_WINDOW: Duration = Duration::from_secs(3);
/// How long the server answers after the grant.
const ANSWERS: Duration = Duration::from_millis(200);

fn protected() -> String {
    let server = RedisServer::start();
    scene::run(async {
        let guard = handed_over(&server, None).await;
        tokio::time::sleep(ANSWERS).await;
        // On a busy machine it may take longer, and counts all the same.
        wait::until("it has its ttl", || guard.remaining() > TTL.mul_f64(0.9)).await;
        let had = guard.remaining();
        server.stop_signal();
        tokio::time::sleep(CLAIM_WINDOW).await;
        assert!(guard.is_held(), "{:?}", guard.lease().state());
        server.cont_signal();
        assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
        format!("held on, with {had:?} left when the server stopped")
    })
}

fn control() -> String {
    let server = RedisServer::start();
    scene::run(async {
        let guard = handed_over(&server, Some(CLAIM_WINDOW)).await;
        server.stop_signal();
        let end = wait::soon("the end of belief", guard.lost()).await;
        server.cont_signal();
        assert_eq!(end, LeaseEnd::Lost(LossReason::Expired));
        drop(guard);
        format!("lost within its claim window of {CLAIM_WINDOW:?}, with a ttl of {TTL:?}")
    })
}

/// A lease that came by a message.
async fn handed_over(server: &RedisServer, ttl: Option<Duration>) -> Guard {
    let builder = || patient::builder().ttl(TTL).claim_window(CLAIM_WINDOW);
    let (first, second) = (builder(), builder());
    let first = first.connect(&server.url()).await.expect("the server answers");
    let second = second.connect(&server.url()).await.expect("the server answers");
    let before = scene::take(&first, "a").await;
    let lock = second.lock("a").expect("a name");
    let mut acquire = lock.acquire().wait(wait::CEILING);
    if let Some(ttl) = ttl {
        acquire = acquire.ttl(ttl);
    }
    let waiting = tokio::spawn(acquire);
    line::until_length(server, 1).await;
    before.release().await.expect("held to the end");
    let guard = wait::soon("the message", waiting).await.expect("no panic").expect("a lease");
    // It goes on without its runtime.
    drop(first);
    guard
}
