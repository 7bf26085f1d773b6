//! A shard that dies is told as an outage to those who wait for its names, while others answer.

use std::time::Duration;

use leasehold::error::AcquireError;
use leasehold_testkit::cluster::RedisCluster;

use super::scene::{a_name_for_each, key};
use crate::support::{patient, wait};

/// One that stands in a queue has heard of the shard before it died.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_dies_under_a_queue_is_told_as_an_outage() {
    let cluster = RedisCluster::start();
    let names = a_name_for_each();
    let connect = async || {
        let builder = patient::builder().command_timeout(Duration::from_secs(1));
        builder.connect(&cluster.url()).await.expect("the Cluster has masters")
    };
    let (holds, waits) = (connect().await, connect().await);
    let guard = holds.lock(&names[0]).expect("a name").acquire().await.expect("a lease");
    let acquire = waits.lock(&names[0]).expect("a name").acquire();
    let acquire = acquire.wait(Duration::from_secs(300)).outage_patience(Duration::from_secs(3));
    let waiting = tokio::spawn(acquire);
    let down = RedisCluster::owner_of(&key(&names[0]));
    let queue = format!("leasehold:{{{}}}:queue", names[0]);
    let stands = || cluster.servers()[down].query::<u64>(&["ZCARD", &*queue]) == 1;
    wait::until("it stands in the queue", stands).await;

    cluster.kill(down);
    // Locks of the others, at once: a node that misses one for long serves none of its own.
    let lock = waits.lock(&names[1]).expect("a name");
    lock.acquire().await.expect("its shard answers").release().await.expect("it is held");
    match wait::soon("the outage is told", waiting).await.expect("no panic") {
        Err(AcquireError::Unavailable(outage)) => assert!(outage.silent_for.as_secs() >= 2),
        other => panic!("its shard is dead, and yet {other:?}"),
    }
    drop(guard);
}
