//! Beside a real server while tokio's clock is paused.

use std::{fs, time::Duration};

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::RedisServer;

use crate::support::patient;

/// For how long a processor has worked for this thread.
fn worked() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

#[tokio::test]
async fn a_wait_takes_its_real_time_and_keeps_no_core_busy() {
    const WAIT: Duration = Duration::from_secs(2);
    let server = RedisServer::start();
    let locks = patient::builder().connect(&server.url()).await.expect("the server answers");
    let lock = locks.lock("orders/42").expect("a name");
    let held = lock.acquire().await.expect("a lease");
    tokio::time::pause();
    let (began, before) = (SystemClock.now(), worked());
    lock.acquire().wait(WAIT).await.expect_err("it is held");
    let (took, worked) =
        (SystemClock.now().saturating_since(began), worked().saturating_sub(before));
    println!("{worked:?} of {took:?}");
    assert!(took >= WAIT && worked < took / 4, "{worked:?} of {took:?}");
    held.release().await.expect("held to the end");
}
