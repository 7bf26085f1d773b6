use std::time::Duration;

use leasehold::error::AcquireError;
use leasehold_testkit::RedisServer;

use super::net::Net;
use crate::support::{matrix::row, naive::NaiveLock, patient, raw, wait};

row! {
    ttl_below_round_trip: protected, control;
    fault: "a round trip to the server takes longer than the ttl of a lock (200 ms and 100 ms)",
    right: "the error tells both; the server is asked seldom; a ttl that is long enough is served",
    control: "a client that asks again after each answer that came too late",
}

const TTL: Duration = Duration::from_millis(100);
/// One way.
const DELAY: Duration = Duration::from_millis(100);
/// A sixth of it, which a renewal has, is one and a half round trips.
const SERVED: Duration = Duration::from_millis(1800);
const WAIT: Duration = Duration::from_secs(8);

/// How many scripts the server has run.
fn scripts(server: &RedisServer) -> u64 {
    server.calls("eval") + server.calls("evalsha")
}

fn protected() -> String {
    let net = Net::start();
    net.proxy.delay_all(DELAY);
    wait::on_one_thread(async {
        let locks = patient::builder().connect(&net.url()).await.expect("the server answers");
        let before = scripts(&net.server);
        let lock = locks.lock("a").expect("a name");
        let acquired = wait::soon("the end", lock.acquire().ttl(TTL).wait(WAIT)).await;
        let Err(error @ AcquireError::Unavailable(_)) = &acquired else { panic!("{acquired:?}") };
        let told = error.to_string();
        for words in ["a ttl of 100ms is too short", "a round trip to it takes 2", "or more"] {
            assert!(told.contains(words), "{words:?} in {told}");
        }
        let asked = scripts(&net.server) - before;
        assert!(asked < 25, "{asked} scripts");
        let served = lock.acquire().wait(wait::CEILING).await.expect("a ttl that is long enough");
        served.release().await.expect("held to the end");
        // The first renewal of a process has no connection of its own yet.
        let others = patient::builder().connect(&net.url()).await.expect("the server answers");
        let guard = others.lock("b").expect("a name").acquire().ttl(SERVED).await.expect("free");
        let lost = tokio::time::timeout(SERVED * 2, guard.lost()).await;
        assert!(lost.is_err(), "renewed with a third of the time to spare: {lost:?}");
        let said = told.find("a ttl of").map_or("", |at| &told[at..]);
        format!("{asked} scripts in {WAIT:?}; {said}")
    })
}

fn control() -> String {
    let net = Net::start();
    net.proxy.delay_all(DELAY);
    wait::on_one_thread(async {
        const TTL: Duration = Duration::from_millis(50);
        let mut lock = NaiveLock::new(raw::connect(&net.url()).await, "a", TTL);
        for _ in 0..10 {
            let held = lock.try_acquire().await.expect("an answer");
            assert!(held.is_some(), "the last lease is over");
            let exists: u64 = net.server.query(&["EXISTS", &lock.key()]);
            assert_eq!(exists, 0, "it was over before its answer came");
        }
        "10 leases in a row were believed in after their end, and nothing told it".into()
    })
}
