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

/// The silence of a shard is that of its node, although others answer meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_silence_of_a_shard_is_told_from_its_beginning() {
    const WAITS: usize = 5;
    let cluster = RedisCluster::start();
    let names = a_name_for_each();
    let builder = patient::builder().command_timeout(Duration::from_millis(500));
    let locks = builder.connect(&cluster.url()).await.expect("the Cluster has masters");
    let down = RedisCluster::owner_of(&key(&names[0]));
    cluster.kill(down);
    let of_shard = (0..).map(|number| format!("counter-{number}"));
    let of_shard = of_shard.filter(|name| RedisCluster::owner_of(&key(name)) == down);
    let waits = of_shard.take(WAITS).enumerate().map(|(number, name)| {
        let acquire = locks.lock(name).expect("a name").acquire();
        let patience = Duration::from_millis(2_000 + 130 * number as u64);
        tokio::spawn(acquire.wait(Duration::from_secs(300)).outage_patience(patience))
    });
    let waits: Vec<_> = waits.collect();
    let other = locks.lock(&*names[1]).expect("a name");
    while !waits.iter().all(tokio::task::JoinHandle::is_finished) {
        other.acquire().await.expect("its shard answers").release().await.expect("it is held");
        wait::a_moment().await;
    }
    for waited in waits {
        match waited.await.expect("no panic") {
            Err(AcquireError::Unavailable(outage)) => {
                eprintln!("{outage}");
                assert!(outage.silent_for >= Duration::from_millis(1_900), "{outage}");
            }
            other => panic!("its shard is dead, and yet {other:?}"),
        }
    }
}
