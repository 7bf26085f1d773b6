//! Failovers under load: fences grow, the gate accepts no stale write, and no increment is lost.
#![expect(clippy::disallowed_methods, reason = "a failover takes real time")]

use std::{
    env,
    time::{Duration, Instant},
};

use leasehold::LockRuntime;
use leasehold_testkit::{RedisServer, sentinel::SentinelGroup};
use tokio::task::JoinSet;

use crate::support::{
    counting::{Counting, GOES_ON, ended, median_and_worst},
    patient, wait,
};

const TTL: Duration = Duration::from_secs(2);
const NAME: &str = "counter";
/// How many tasks each of two runtimes has.
const TASKS: usize = 4;
/// How many masters are killed; as many hang, and as many are replaced on purpose.
const FAILOVERS: &str = "LEASEHOLD_FAILOVERS";

fn failovers() -> usize {
    env::var(FAILOVERS).map_or(1, |count| count.parse().expect("a number"))
}

async fn runtime_at(url: &str) -> LockRuntime {
    // Longer than work may stand still: nothing may wait for a master that hangs.
    let long = Duration::from_secs(60);
    let builder = patient::builder().connect_timeout(long).command_timeout(long);
    let builder = builder.ttl(TTL).outage_patience(2 * long);
    builder.connect(url).await.expect("the group has a master")
}

/// Whether all other servers have what the master has.
fn is_whole(master: &RedisServer) -> bool {
    let info: String = master.query(&["INFO", "replication"]);
    info.matches("state=online").count() == 2
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_the_master_is_killed_hangs_or_is_replaced() {
    let mut group = SentinelGroup::start();
    let scene = Counting::under(NAME);
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        scene.start(&runtime_at(&group.url()).await, TASKS, &mut tasks);
    }
    scene.goes_on().await;
    let (mut killed, mut hung, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..failovers() {
        let began = Instant::now();
        let index = group.kill_master();
        scene.goes_on().await;
        killed.push(began.elapsed());
        group.revive(index);
        wait::until("the group is whole", || is_whole(group.master())).await;

        let began = Instant::now();
        let old = group.master();
        old.stop_signal();
        scene.goes_on().await;
        hung.push(began.elapsed());
        // It wakes up as a master, until the Sentinels have made it a replica.
        old.cont_signal();
        wait::until("the group is whole", || is_whole(group.master())).await;

        let began = Instant::now();
        // It blocks its thread; the tasks go on.
        tokio::task::block_in_place(|| group.fail_over());
        scene.goes_on().await;
        replaced.push(began.elapsed());
        wait::until("the group is whole", || is_whole(group.master())).await;
    }
    scene.end();
    ended(tasks).await;
    println!(
        "  until {GOES_ON} grants after a master was killed: {}; hung: {}; replaced: {}; {} writes, {} refused",
        median_and_worst(killed),
        median_and_worst(hung),
        median_and_worst(replaced),
        scene.accepted(),
        scene.stale(),
    );
    scene.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_at_the_new_master_and_the_old_one_is_left() {
    let group = SentinelGroup::start();
    let locks = runtime_at(&group.url()).await;
    let guard = locks.lock(NAME).expect("a name").acquire().await.expect("a lease");
    let key = format!("leasehold:{{{NAME}}}:lease");
    let has_it = || group.servers().iter().all(|server| server.query(&["EXISTS", &*key]));
    wait::until("the replicas have the lease", has_it).await;
    let old = group.master();
    tokio::task::block_in_place(|| group.fail_over());
    assert_ne!(old.pid(), group.master().pid());

    tokio::time::sleep(2 * TTL).await;
    assert!(guard.is_held(), "it is renewed where it lives now");
    let left = || !old.query::<String>(&["CLIENT", "LIST"]).contains("name=leasehold");
    wait::until("no connection to the old master is left", left).await;
    let has = |server: &RedisServer| server.query::<bool>(&["EXISTS", &*key]);
    assert!(has(group.master()));
    guard.release().await.expect("a lease that was held to the end");
}

#[tokio::test]
async fn control_an_address_of_one_server_stays_with_it() {
    let mut group = SentinelGroup::start();
    let builder = LockRuntime::builder().ttl(TTL).outage_patience(Duration::from_secs(1));
    let locks = builder.connect(&group.master().url()).await.expect("a master");
    let lock = locks.lock(NAME).expect("a name");
    lock.acquire().await.expect("a lease").release().await.expect("held to the end");
    group.kill_master();
    // Another server is the master now.
    let _ = group.master();
    lock.acquire().wait(Duration::from_secs(5)).await.expect_err("nobody is there");
}
