use std::time::Duration;

use leasehold::redis::Replication;
use leasehold_testkit::cluster::{RedisCluster, slot_of};
use tokio::task::block_in_place;

use super::{asking, assert_unacknowledged, one_in_time, until_renewed};

fn slot(name: &str) -> u16 {
    slot_of(&format!("leasehold:{{{name}}}:lease"))
}

/// The replica that acknowledges is that of the master that owns the slot, also on the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_of_every_shard_are_acknowledged_and_move_with_their_slot() {
    let cluster = RedisCluster::with_replicas();
    let builder = asking(one_in_time()).ttl(Duration::from_secs(6));
    let locks = builder.connect(&*cluster.url()).await.expect("the Cluster has masters");
    let mut guards = Vec::new();
    for number in 0..12 {
        let lock = locks.lock(format!("orders/{number}")).expect("a name");
        guards.push(lock.acquire().await.expect("each master has a replica"));
    }
    let two = Replication::wait(2, Duration::from_millis(200)).unwrap();
    let lock = locks.lock("two").expect("a name");
    assert_unacknowledged(lock.acquire().replication(two).try_acquire().await);

    // Half-way: the key is still where it was, and the slot is open.
    let name = "orders/0";
    let from = cluster.owner_of_now(&format!("leasehold:{{{name}}}:lease")).expect("an owner");
    block_in_place(|| cluster.begin_migration(slot(name), (from + 1) % 3));
    until_renewed(&guards[0]).await;
    block_in_place(|| cluster.move_keys(slot(name)));
    block_in_place(|| cluster.end_migration(slot(name)));
    until_renewed(&guards[0]).await;
    for guard in guards {
        guard.release().await.expect("a lease that was held to the end");
    }
}
