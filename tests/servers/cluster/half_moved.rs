//! A slot half of whose keys have moved, while its locks are entered again, released and waited for.
#![expect(clippy::disallowed_methods, reason = "leases are held for real time")]

use std::time::Duration;

use leasehold::{Guard, error::ReleaseError, store::Inspection};
use leasehold_testkit::{Patience, cluster::RedisCluster};
use redis::Value;
use tokio::task::{JoinSet, block_in_place};

use super::scene::{TTL, a_name_for_each, runtime_at, slot};
use crate::support::wait;

const LOCKS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_with_locks_of_a_torn_slot_is_done_in_the_end() {
    let cluster = RedisCluster::start();
    let first = &a_name_for_each()[0];
    // Other names with the same hash tag.
    let names: Vec<_> = (0..LOCKS).map(|number| format!("{first}}}-{number}")).collect();
    let (here, there) = (runtime_at(&cluster.url()).await, runtime_at(&cluster.url()).await);
    let mut held = Vec::new();
    for name in &names {
        held.push(here.lock(&**name).expect("a name").acquire().await.expect("a lease"));
    }
    let mut waiting = JoinSet::new();
    // Every other lock has a queue, whose keys may be torn from the lease.
    for name in names.iter().step_by(2) {
        let lock = there.lock(&**name).expect("a name");
        waiting.spawn(async move { lock.acquire().wait(Duration::from_secs(120)).await });
    }
    let stand = || queues(&cluster, 0, &names) == LOCKS / 2;
    wait::until("the other runtime stands in all queues", stand).await;

    let slot = slot(first);
    block_in_place(|| cluster.begin_migration(slot, 1));
    block_in_place(|| move_half(&cluster, slot));
    let mut using: JoinSet<_> = held.into_iter().map(enter_and_release).collect();
    // Some of it has been refused by both masters by now, again and again.
    tokio::time::sleep(2 * TTL).await;
    block_in_place(|| cluster.move_keys(slot));
    block_in_place(|| cluster.end_migration(slot));

    while let Some(used) = wait::soon("its slot has arrived", using.join_next()).await {
        used.expect("no panic");
    }
    let mut served = 0;
    while let Some(next) = wait::soon("all are released", waiting.join_next()).await {
        let guard = next.expect("no panic").expect("the place came along");
        guard.release().await.expect("held to the end");
        served += 1;
    }
    assert_eq!(served, LOCKS / 2);
    for name in &names {
        let free = || async {
            let inspected = here.inspect(name).await.expect("an answer");
            matches!(inspected, Inspection::Free { .. }).then_some(())
        };
        let free = Patience::of(wait::CEILING).until_async(free).await;
        assert!(free.is_some(), "{name} is left behind");
    }
}

async fn enter_and_release(guard: Guard) {
    let inner = guard.reenter().await.expect("a lease that is renewed meanwhile");
    inner.release().await.expect("one of two holds");
    match guard.release().await {
        // The runtime goes on with it.
        Ok(_) | Err(ReleaseError::Unconfirmed { .. }) => {}
        Err(error) => panic!("a lease that was held to the end: {error}"),
    }
}

fn queues(cluster: &RedisCluster, master: usize, names: &[String]) -> usize {
    let is_there = |name: &&String| {
        let queue = format!("leasehold:{{{name}}}:queue");
        cluster.servers()[master].query::<u64>(&["ZCARD", &*queue]) == 1
    };
    names.iter().filter(is_there).count()
}

/// Moves every other key of a slot from the first master to the second.
fn move_half(cluster: &RedisCluster, slot: u16) {
    let [from, to, _] = cluster.masters() else { panic!("three masters") };
    let keys: Vec<String> = from.query(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "1000"]);
    let port = to.port().expect("a port").to_string();
    for key in keys.iter().step_by(2) {
        let _: Value = from.query(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
    }
    let left: u64 = from.query(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]);
    assert!(left > 0 && to.query::<u64>(&["DBSIZE"]) > 0, "the slot is torn");
}
