//! A shard that is down: its names wait, and nobody else does.

#![expect(clippy::disallowed_methods, reason = "the shard is down for real time")]

use std::time::Instant;

use leasehold_testkit::cluster::RedisCluster;
use tokio::task::JoinSet;

use super::scene::{TTL, a_name_for_each, key, runtime_at};
use crate::support::counting::{Counting, ended};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_is_down_delays_nobody_else() {
    let cluster = RedisCluster::with_replicas();
    let names = a_name_for_each();
    let locks = runtime_at(&cluster.url()).await;
    let mut guards = Vec::new();
    for name in &names {
        // Many in the slot of each, so that renewals travel in batches.
        for number in 0..20 {
            let lock = locks.lock(format!("{name}}}-{number}")).expect("a name");
            guards.push((name, lock.acquire().await.expect("a lease")));
        }
    }
    let all: Vec<_> = names.iter().map(|name| Counting::under(name)).collect();
    let mut tasks = JoinSet::new();
    for counting in &all {
        counting.start(&locks, 2, &mut tasks);
    }
    for counting in &all {
        counting.goes_on().await;
    }

    let down: Vec<usize> = RedisCluster::shard_of(&key(&names[0])).to_vec();
    for server in &down {
        // It hangs, which is worse than being dead.
        cluster.servers()[*server].stop_signal();
    }
    let until = Instant::now() + 3 * TTL;
    while Instant::now() < until {
        all[1].goes_on().await;
        all[2].goes_on().await;
        let lost = guards.iter().filter(|(name, guard)| *name != &names[0] && !guard.is_held());
        assert_eq!(lost.count(), 0, "leases of other shards are lost");
    }
    let told = guards.iter().filter(|(name, guard)| *name == &names[0] && !guard.is_held());
    assert_eq!(told.count(), 20, "each holder on the shard is told that its lease is over");
    for server in down {
        cluster.servers()[server].cont_signal();
    }
    all[0].goes_on().await;
    for counting in &all {
        counting.end();
    }
    ended(tasks).await;
    for counting in &all {
        counting.check();
    }
}
