//! A slot that moves to another master, while a task holds and another waits.
#![expect(clippy::disallowed_methods, reason = "leases are held for real time")]

use std::time::Duration;

use leasehold_testkit::cluster::RedisCluster;
use tokio::task::block_in_place;

use super::scene::{TTL, a_name_for_each, key, runtime_at, slot};
use crate::support::wait;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_and_places_move_with_their_slot() {
    let cluster = RedisCluster::start();
    let name = &a_name_for_each()[0];
    let (here, there) = (runtime_at(&cluster.url()).await, runtime_at(&cluster.url()).await);
    let guard = here.lock(&**name).expect("a name").acquire().await.expect("a lease");
    let first = guard.fence();
    let waiting = {
        let lock = there.lock(&**name).expect("a name");
        tokio::spawn(async move { lock.acquire().wait(Duration::from_secs(60)).await })
    };
    let queue = format!("leasehold:{{{name}}}:queue");
    let stands = || cluster.servers()[0].query::<u64>(&["ZCARD", &*queue]) == 1;
    wait::until("the other runtime stands in the queue", stands).await;

    // Half-way: the keys are there, and the slot is not.
    block_in_place(|| cluster.begin_migration(slot(name), 1));
    block_in_place(|| cluster.move_keys(slot(name)));
    assert!(cluster.servers()[1].query::<u64>(&["DBSIZE"]) > 0);
    tokio::time::sleep(2 * TTL).await;
    assert!(guard.is_held(), "it is renewed where its key is");
    block_in_place(|| cluster.end_migration(slot(name)));
    tokio::time::sleep(2 * TTL).await;
    assert!(guard.is_held(), "it is renewed where its slot is");

    guard.release().await.expect("a lease that was held to the end");
    let next = wait::soon("the place has moved along", waiting).await.expect("no panic");
    let next = next.expect("the place came first");
    assert!(next.fence() > first);
    assert!(cluster.servers()[1].query::<bool>(&["EXISTS", &*key(name)]));
    next.release().await.expect("a lease that was held to the end");
}
