//! What waits for replicas holds nothing else up.

use std::time::Duration;

use leasehold::{error::AcquireError, redis::Replication};
use leasehold_testkit::server::ReplicatedPair;

use super::{asking, connect, one_in_time, until_renewed};
use crate::support::wait;

/// Two replicas, of which one is there.
fn two() -> Replication {
    Replication::wait(2, Duration::from_millis(800)).unwrap()
}

/// The acquires would take longer one after another than the ttl is.
#[tokio::test]
async fn a_demand_that_cannot_be_met_costs_others_no_renewal() {
    let pair = ReplicatedPair::start();
    let builder = asking(one_in_time()).ttl(Duration::from_secs(6));
    let locks = builder.connect(pair.master.url()).await.expect("the server answers");
    let guard = locks.lock("a").unwrap().acquire().await.expect("one replica is there");
    let hopeless = (0..8).map(|number| {
        let lock = locks.lock(format!("hopeless/{number}")).unwrap();
        let wait = Duration::from_secs(8);
        tokio::spawn(async move { lock.acquire().replication(two()).wait(wait).await })
    });
    let hopeless: Vec<_> = hopeless.collect();
    for task in hopeless {
        let outcome = wait::soon("its time is over", task).await.unwrap();
        assert!(matches!(outcome, Err(AcquireError::Unavailable(_))), "{outcome:?}");
    }
    assert!(guard.is_held(), "one replica has its renewals");
    guard.release().await.expect("it is held");
}

/// A full server refuses grants; what is held goes on, as it does without acknowledgements.
#[tokio::test]
async fn a_full_server_renews_what_is_held() {
    let pair = ReplicatedPair::start();
    let builder = asking(one_in_time()).ttl(Duration::from_secs(6));
    let locks = builder.connect(pair.master.url()).await.expect("the server answers");
    let guard = locks.lock("a").unwrap().acquire().await.expect("one replica is there");
    pair.master.command(&["CONFIG", "SET", "maxmemory", "1"]);
    until_renewed(&guard).await;
    locks.lock("b").unwrap().try_acquire().await.expect_err("the server is full");
    guard.release().await.expect("it is held");
    pair.master.command(&["CONFIG", "SET", "maxmemory", "0"]);
}

/// Acquires of one moment wait together.
#[tokio::test]
async fn acquires_of_one_moment_share_a_wait() {
    const TASKS: u64 = 300;
    let pair = ReplicatedPair::start();
    let locks = connect(&pair.master, one_in_time()).await;
    // A new replica acknowledges for the first time after up to a second. That is longer than the
    // pause between two heartbeats, which would find the grants, and have each one confirmed.
    let first = locks.lock("first").unwrap().acquire().await.expect("one replica is there");
    let before = pair.master.calls("wait");
    let acquires = (0..TASKS).map(|number| {
        let lock = locks.lock(format!("{number}")).unwrap();
        tokio::spawn(async move { lock.acquire().await })
    });
    let acquires: Vec<_> = acquires.collect();
    for acquire in acquires {
        let guard = wait::soon("all are free", acquire).await.unwrap().expect("a free lock");
        guard.release().await.expect("it is held");
    }
    let waits = pair.master.calls("wait") - before;
    // A busy machine lets them come one by one.
    assert!((TASKS / 64..TASKS).contains(&waits), "{waits} waits for {TASKS} locks");
    first.release().await.expect("it is held");
}
