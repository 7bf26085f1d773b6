//! How processes share a lock whose times of day are apart.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::{
    LockRuntime, ReentrantLock,
    time::{Clock, Instant},
};
use leasehold_core::{LockStore, QuorumSettings};
use leasehold_quorum::QuorumRules;
use leasehold_testkit::{
    ManualClock,
    sim::{Drift, QuorumWorld},
};

use super::{super::plan::millis, plan::CALM};

const TTL: Duration = Duration::from_secs(2);
/// The tasks of a process, of which each has one section after another.
const TASKS: usize = 3;
const HOLD: Duration = millis(1);
const SPAN: Duration = Duration::from_secs(20);

/// What is wrong in a run.
#[derive(Debug, Clone, Copy)]
struct Scene {
    /// How far the clock of each node is ahead, in microseconds.
    nodes: &'static [i64],
    /// By how much the time of day of each process is wrong, in milliseconds.
    shifts: &'static [i64],
    /// A node that answers nothing from the beginning on.
    down: Option<usize>,
}

/// A task that uses one lock again and again.
struct Worker {
    lock: ReentrantLock,
    clock: ManualClock,
    ends: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

impl Worker {
    async fn run(self) {
        while !self.ends.load(Ordering::Relaxed) {
            let guard = self.lock.acquire().wait_forever().await.expect("it waits");
            self.clock.sleep_until(self.clock.now() + HOLD).await;
            self.count.fetch_add(1, Ordering::Relaxed);
            guard.release().await.expect("held to the end");
        }
    }
}

/// How often each process had the lock, and how many commands the nodes were sent.
fn run(seed: u64, scene: Scene) -> (Vec<u64>, u64) {
    let settings = QuorumSettings::default().longest_ttl(TTL).expect("in range");
    let mut world = QuorumWorld::new(seed, scene.nodes, settings, CALM, None);
    if let Some(node) = scene.down {
        world.fell(node, Instant::at(Duration::from_secs(1_000_000)), false);
    }
    let (ends, mut counts, mut runtimes) = (Arc::new(AtomicBool::new(false)), vec![], vec![]);
    for shift in scene.shifts {
        let (process, clock) = world.start(Drift::none());
        clock.step_unix(*shift);
        let store: Arc<dyn LockStore> = Arc::new(world.store(process, QuorumRules::default()));
        let builder = LockRuntime::builder()
            .clock(Arc::new(clock.clone()))
            .entropy(world.entropy(process))
            .ttl(TTL)
            .claim_window(TTL);
        let locks = world.within(process, || builder.on_store(store).expect("in range"));
        let count = Arc::new(AtomicU64::new(0));
        for _ in 0..TASKS {
            let lock = locks.lock("orders/42").expect("a name");
            let (clock, ends) = (clock.clone(), Arc::clone(&ends));
            let worker = Worker { lock, clock, ends, count: Arc::clone(&count) };
            world.spawn(process, worker.run());
        }
        counts.push(count);
        runtimes.push(locks);
    }
    world.run_until(world.now() + SPAN);
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    ends.store(true, Ordering::Relaxed);
    world.run_until(world.now() + TTL * 2);
    (counts, world.sent())
}

/// Nobody has more than 1.2 times what another one has.
fn are_alike(scene: Scene) {
    for seed in 0..3 {
        let (shares, _) = run(seed, scene);
        println!("seed {seed}, {scene:?}: {shares:?}");
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(*least > 200, "seed {seed}, {scene:?}: {shares:?}");
        assert!(most * 10 <= least * 12, "seed {seed}, {scene:?}: {shares:?}");
    }
}

const THREE: Scene = Scene { nodes: &[0, 3_000, -3_000], shifts: &[0, 0, 0, 0], down: None };

#[test]
fn alike_while_all_clocks_are_right() {
    are_alike(THREE);
    are_alike(Scene { nodes: &[0, 3_000, -3_000, 20_000, 0], ..THREE });
    are_alike(Scene { down: Some(0), ..THREE });
}

#[test]
fn alike_although_a_process_is_a_minute_ahead_or_behind() {
    are_alike(Scene { shifts: &[60_000, 0, 0, 0], ..THREE });
    are_alike(Scene { shifts: &[0, 0, 0, -60_000], ..THREE });
    are_alike(Scene { shifts: &[-60_000, 0, 60_000], ..THREE });
    are_alike(Scene { nodes: &[0, 0, 0, 0, 0], shifts: &[-60_000, 0, 60_000], ..THREE });
}

#[test]
fn alike_although_a_process_is_wrong_within_the_tolerance() {
    are_alike(Scene { shifts: &[1_000, 0, 0, 0], ..THREE });
    are_alike(Scene { shifts: &[-1_000, 0, 0, 0], ..THREE });
    are_alike(Scene { shifts: &[4_900, 0, -4_900], ..THREE });
}

#[test]
fn alike_although_processes_are_wrong_and_a_node_is_down() {
    for down in 0..3 {
        let down = Some(down);
        are_alike(Scene { shifts: &[60_000, 0, -60_000], down, ..THREE });
        are_alike(Scene { shifts: &[1_000, 0, 0], down, ..THREE });
    }
}

#[test]
fn alike_although_the_clocks_of_nodes_are_wrong() {
    are_alike(Scene { nodes: &[60_000_000, 0, -60_000_000], shifts: &[1_000, 0, 0], ..THREE });
    are_alike(Scene { nodes: &[1_000_000, 0, -1_000_000], shifts: &[-1_000, 0, 0], ..THREE });
}

/// With one node of three away, the other two have to call the same waiter: else each of two waiters has a node,
/// and both give it back, again and again.
#[test]
fn a_section_costs_about_as_many_commands_while_a_node_is_down() {
    for seed in 0..5 {
        let commands = |down| {
            let (shares, sent) = run(seed, Scene { down, ..THREE });
            sent * 100 / shares.iter().sum::<u64>()
        };
        let (whole, part) = (commands(None), [0, 1, 2].map(|node| commands(Some(node))));
        println!("seed {seed}: {whole} commands in 100 sections, with a node down {part:?}");
        assert!(part.iter().all(|part| part * 10 < whole * 18), "seed {seed}: {whole} {part:?}");
    }
}
