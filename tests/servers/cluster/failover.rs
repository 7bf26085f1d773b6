//! A lease lives on where its slot lives after a failover.
#![expect(clippy::disallowed_methods, reason = "a failover takes real time")]

use leasehold_testkit::{Patience, cluster::RedisCluster};
use tokio::task::block_in_place;

use super::scene::{TTL, a_name_for_each, key, runtime_at, slot};
use crate::support::{storage, wait};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_at_the_new_owner_and_the_old_one_is_left() {
    let cluster = RedisCluster::with_replicas();
    let locks = runtime_at(&cluster.url()).await;
    let name = &a_name_for_each()[0];
    let guard = locks.lock(&**name).expect("a name").acquire().await.expect("a lease");
    let old = cluster.owner_of_now(&key(name)).expect("an owner");
    block_in_place(|| cluster.fail_over(old));
    let new = cluster.owner_of_now(&key(name)).expect("an owner");
    assert_ne!(old, new);

    tokio::time::sleep(2 * TTL).await;
    assert!(guard.is_held(), "it is renewed where it lives now: {guard:?}");
    let old = &cluster.servers()[old];
    // A connection that asks who owns the slots may stay: any node knows.
    let asks = |client: &&str| !client.contains("name=leasehold") || client.contains("cmd=cluster");
    let left = || old.query::<String>(&["CLIENT", "LIST"]).lines().all(|client| asks(&client));
    wait::until("no connection for locks to the old master is left", left).await;
    assert!(cluster.servers()[new].query::<bool>(&["EXISTS", &*key(name)]));
    assert_eq!(cluster.owner_of_now(&key(name)), Some(new), "{}", slot(name));
    guard.release().await.expect("a lease that was held to the end");
}

/// Nobody asks who owns the slots while the gate is not used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_gate_finds_the_new_owner_where_the_old_one_is_its_replica() {
    let cluster = RedisCluster::with_replicas();
    let gate = storage::gate_at(&cluster.url());
    let locks = runtime_at(&cluster.url()).await;
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    gate.set("v", "1", guard.stamp()).await.expect("the holder writes");
    let old = cluster.owner_of_now("v").expect("an owner");
    block_in_place(|| {
        cluster.kill(old);
        let another = || cluster.owner_of_now("v").filter(|owner| *owner != old);
        Patience::of(wait::CEILING).until(another).expect("the replica takes over");
        cluster.revive(old);
        cluster.wait_until_whole();
    });
    let guard = if guard.is_held() {
        guard
    } else {
        locks.lock("a").expect("a name").acquire().await.expect("a lease")
    };
    gate.set("v", "2", guard.stamp()).await.expect("the new owner is found");
    guard.release().await.expect("a lease that was held to the end");
}
