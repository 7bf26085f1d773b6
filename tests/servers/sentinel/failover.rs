//! Failovers under load: fences grow, the gate accepts no stale write, and no increment is lost.
#![expect(clippy::disallowed_methods, reason = "a failover takes real time")]

use std::{
    env,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold::{
    FenceToken, LockRuntime,
    fencing::{FenceGate, MemoryGate},
};
use leasehold_testkit::{RedisServer, sentinel::SentinelGroup};
use tokio::task::JoinSet;

use crate::support::{patient, wait};

const TTL: Duration = Duration::from_secs(2);
const NAME: &str = "counter";
/// How many tasks each of two runtimes has.
const TASKS: usize = 4;
/// So many grants show that work goes on.
const GOES_ON: u64 = 50;
/// How many masters are killed; as many hang, and as many are replaced on purpose.
const FAILOVERS: &str = "LEASEHOLD_FAILOVERS";

/// What is counted under the lock, behind a gate.
#[derive(Default)]
struct Scene {
    gate: MemoryGate,
    value: AtomicU64,
    accepted: AtomicU64,
    stale: AtomicU64,
    fences: Mutex<Vec<FenceToken>>,
    is_over: AtomicBool,
}

impl Scene {
    fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Adds one for as long as the scene goes on; what fails is tried again.
    async fn count(self: Arc<Self>, locks: LockRuntime) {
        let lock = locks.lock(NAME).expect("a name");
        while !self.is_over.load(Ordering::SeqCst) {
            let Ok(guard) = lock.acquire().wait(Duration::from_secs(60)).await else { continue };
            let stamp = guard.stamp();
            // Before anything is read: a holder whose lease was lost writes no more from then on.
            if self.gate.admit(NAME, stamp).await.is_ok() {
                let seen = self.value.load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                let write = || {
                    self.value.store(seen + 1, Ordering::SeqCst);
                    self.fences.lock().expect("no panic").push(guard.fence());
                };
                let written = self.gate.write(NAME, stamp, write);
                let count = if written.is_ok() { &self.accepted } else { &self.stale };
                count.fetch_add(1, Ordering::SeqCst);
            }
            // Lost with its master, as a rule.
            let _ = guard.release().await;
        }
    }

    async fn goes_on(&self) {
        let before = self.accepted();
        wait::until("work goes on", || self.accepted() >= before + GOES_ON).await;
    }
}

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

fn median_and_worst(mut all: Vec<Duration>) -> String {
    all.sort_unstable();
    let at = |index: usize| all.get(index).copied().unwrap_or_default();
    format!("median {:?}, worst {:?}", at(all.len() / 2), at(all.len().saturating_sub(1)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_when_the_master_is_killed_hangs_or_is_replaced() {
    let mut group = SentinelGroup::start();
    let scene = Arc::new(Scene::default());
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let locks = runtime_at(&group.url()).await;
        (0..TASKS).for_each(|_| drop(tasks.spawn(Arc::clone(&scene).count(locks.clone()))));
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
    scene.is_over.store(true, Ordering::SeqCst);
    while let Some(ended) = wait::soon("the tasks end", tasks.join_next()).await {
        ended.expect("no panic");
    }
    let fences = scene.fences.lock().expect("no panic").clone();
    println!(
        "  until {GOES_ON} grants after a master was killed: {}; hung: {}; replaced: {}; {} writes, {} refused",
        median_and_worst(killed),
        median_and_worst(hung),
        median_and_worst(replaced),
        scene.accepted(),
        scene.stale.load(Ordering::SeqCst),
    );
    assert!(fences.is_sorted_by(|a, b| a < b), "a fence repeats or goes back");
    assert_eq!(scene.value.load(Ordering::SeqCst), scene.accepted(), "an increment is lost");
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
