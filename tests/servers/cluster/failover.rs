//! Failovers under load: fences grow, the gate accepts no stale write, and no increment is lost.
#![expect(clippy::disallowed_methods, reason = "a failover takes real time")]

use std::{env, time::Instant};

use leasehold_testkit::cluster::RedisCluster;
use tokio::task::{JoinSet, block_in_place};

use super::scene::{TTL, a_name_for_each, key, runtime_at, slot};
use crate::support::{
    counting::{Counting, GOES_ON, ended, median_and_worst},
    wait,
};

/// How many tasks each of two runtimes has for each name.
const TASKS: usize = 2;
/// How many masters are killed; as many hang, and as many are replaced on purpose.
const FAILOVERS: &str = "LEASEHOLD_FAILOVERS";

fn failovers() -> usize {
    env::var(FAILOVERS).map_or(1, |count| count.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_a_master_is_killed_hangs_or_is_replaced() {
    let cluster = RedisCluster::with_replicas();
    let names = a_name_for_each();
    let all: Vec<_> = names.iter().map(|name| Counting::under(name)).collect();
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let locks = runtime_at(&cluster.url()).await;
        for counting in &all {
            counting.start(&locks, TASKS, &mut tasks);
        }
    }
    for counting in &all {
        counting.goes_on().await;
    }
    let (mut killed, mut hung, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..failovers() {
        // Each shard in turn.
        let (name, counting) = (&names[round % names.len()], &all[round % names.len()]);
        let others = || all.iter().filter(|other| !std::ptr::eq(*other, counting));

        let began = Instant::now();
        let old = cluster.owner_of_now(&key(name)).expect("an owner");
        cluster.kill(old);
        for other in others() {
            other.goes_on().await;
        }
        counting.goes_on().await;
        killed.push(began.elapsed());
        cluster.revive(old);
        block_in_place(|| cluster.wait_until_whole());

        let began = Instant::now();
        let old = cluster.owner_of_now(&key(name)).expect("an owner");
        cluster.servers()[old].stop_signal();
        for other in others() {
            other.goes_on().await;
        }
        counting.goes_on().await;
        hung.push(began.elapsed());
        cluster.servers()[old].cont_signal();
        block_in_place(|| cluster.wait_until_whole());

        let began = Instant::now();
        let old = cluster.owner_of_now(&key(name)).expect("an owner");
        block_in_place(|| cluster.fail_over(old));
        counting.goes_on().await;
        replaced.push(began.elapsed());
        block_in_place(|| cluster.wait_until_whole());
    }
    for counting in &all {
        counting.end();
    }
    ended(tasks).await;
    println!(
        "  until {GOES_ON} grants after a master was killed: {}; hung: {}; replaced: {}; {} writes, {} refused",
        median_and_worst(killed),
        median_and_worst(hung),
        median_and_worst(replaced),
        all.iter().map(|counting| counting.accepted()).sum::<u64>(),
        all.iter().map(|counting| counting.stale()).sum::<u64>(),
    );
    for counting in &all {
        counting.check();
    }
}

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
    assert!(guard.is_held(), "it is renewed where it lives now");
    let old = &cluster.servers()[old];
    // A connection that asks who owns the slots may stay: any node knows.
    let asks = |client: &&str| !client.contains("name=leasehold") || client.contains("cmd=cluster");
    let left = || old.query::<String>(&["CLIENT", "LIST"]).lines().all(|client| asks(&client));
    wait::until("no connection for locks to the old master is left", left).await;
    assert!(cluster.servers()[new].query::<bool>(&["EXISTS", &*key(name)]));
    assert_eq!(cluster.owner_of_now(&key(name)), Some(new), "{}", slot(name));
    guard.release().await.expect("a lease that was held to the end");
}
