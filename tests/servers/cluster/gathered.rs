//! A slot that moves to and fro while commands of many tasks share calls.
#![expect(clippy::disallowed_methods, reason = "slots move in real time")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::{Fence, LockRuntime};
use leasehold_testkit::cluster::RedisCluster;
use tokio::task::{JoinSet, block_in_place, yield_now};

use super::scene::{a_name_for_each, slot};
use crate::support::{patient, wait};

/// How many locks are in the slot that moves, and how many elsewhere.
const LOCKS: usize = 64;

/// How often it moves.
const MOVES: usize = 6;

/// Fewer calls for a hundred turns show that commands share them: alone, a turn on a free lock takes two.
const SHARED: u64 = 170;

/// How long the slot is on its way with its keys, and without.
const TORN: Duration = Duration::from_millis(50);

/// A value that its lock protects, and nothing else.
#[derive(Debug, Default)]
struct Value {
    is_used: AtomicBool,
    count: AtomicU64,
    /// The token of the last turn.
    last: AtomicU64,
}

impl Value {
    /// Adds one in two steps.
    async fn add(&self, fence: Fence) {
        assert!(!self.is_used.swap(true, Ordering::SeqCst), "two are inside at once");
        assert!(self.last.swap(fence.get(), Ordering::SeqCst) < fence.get(), "a stale token");
        let read = self.count.load(Ordering::SeqCst);
        yield_now().await;
        self.count.store(read + 1, Ordering::SeqCst);
        self.is_used.store(false, Ordering::SeqCst);
    }
}

struct Scene {
    names: Vec<String>,
    values: Vec<Value>,
    /// Whether tasks also take the locks of others.
    is_mixed: AtomicBool,
    is_over: AtomicBool,
    added: AtomicU64,
}

/// Most turns of a task are on a lock of its own, which is free; each 32nd is on that of another, as long as they mix.
async fn work(scene: Arc<Scene>, runtime: LockRuntime, task: usize) {
    let mut turns = 0_usize;
    while !scene.is_over.load(Ordering::SeqCst) {
        turns += 1;
        let is_other = turns.is_multiple_of(32) && scene.is_mixed.load(Ordering::SeqCst);
        let at = if is_other { (task + turns / 32) % scene.names.len() } else { task };
        let lock = runtime.lock(&*scene.names[at]).expect("a name");
        let guard = lock.acquire().wait(Duration::from_secs(120)).await.expect("a turn");
        scene.values[at].add(guard.fence()).await;
        scene.added.fetch_add(1, Ordering::SeqCst);
        guard.release().await.expect("a lease that ends long after the test");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_turn_is_lost_while_a_slot_moves_under_shared_calls() {
    let cluster = RedisCluster::start();
    let seeds = a_name_for_each();
    let moving = (0..LOCKS).map(|number| format!("{}}}-{number}", seeds[0]));
    let names: Vec<_> = moving.chain((0..LOCKS).map(|number| format!("other-{number}"))).collect();
    let values = names.iter().map(|_| Value::default()).collect();
    let (is_mixed, is_over, added) = (true.into(), false.into(), AtomicU64::new(0));
    let scene = Arc::new(Scene { names, values, is_mixed, is_over, added });
    let mut tasks = JoinSet::new();
    for number in 0..2 {
        let long = Duration::from_secs(60);
        let builder = patient::builder().connect_timeout(long).command_timeout(long);
        let runtime = builder.ttl(10 * long).outage_patience(2 * long).connections(1);
        let runtime = runtime.connect(&cluster.url()).await.expect("the Cluster has masters");
        let half = scene.names.len() / 2;
        for task in 0..half {
            tasks.spawn(work(Arc::clone(&scene), runtime.clone(), 2 * task + number));
        }
    }
    let more = |count| {
        let (scene, goal) = (&scene, scene.added.load(Ordering::SeqCst) + count);
        wait::until("turns go on", move || scene.added.load(Ordering::SeqCst) >= goal)
    };
    let slot = slot(&scene.names[0]);
    for by in 1..=MOVES {
        more(500).await;
        block_in_place(|| cluster.begin_migration(slot, by % 3));
        // Shared calls take and end leases that are still there; those that need other keys wait.
        tokio::time::sleep(TORN).await;
        block_in_place(|| cluster.move_keys(slot));
        tokio::time::sleep(TORN).await;
        block_in_place(|| cluster.end_migration(slot));
    }
    // Commands about a lock that several tasks wanted go alone for a while, and after a move nothing is shared for up
    // to ten seconds.
    scene.is_mixed.store(false, Ordering::SeqCst);
    let turns = || scene.added.load(Ordering::SeqCst);
    let (mut before, mut least) = ((calls(&cluster), turns()), u64::MAX);
    wait::until("commands share calls", || {
        let now = (calls(&cluster), turns());
        if now.1 >= before.1 + 500 {
            least = least.min((now.0 - before.0) * 100 / (now.1 - before.1));
            before = now;
        }
        least < SHARED
    })
    .await;
    scene.is_over.store(true, Ordering::SeqCst);
    while let Some(worked) = wait::soon("the last turns end", tasks.join_next()).await {
        worked.expect("no panic");
    }
    let added = scene.added.load(Ordering::SeqCst);
    let counts = scene.values.iter().map(|value| value.count.load(Ordering::SeqCst));
    assert_eq!(counts.sum::<u64>(), added, "increments were lost");
    println!("{added} turns, {MOVES} moves; {least} calls for 100 turns");
}

/// Calls of scripts at all masters.
fn calls(cluster: &RedisCluster) -> u64 {
    cluster.masters().iter().map(|server| server.calls("evalsha")).sum()
}
