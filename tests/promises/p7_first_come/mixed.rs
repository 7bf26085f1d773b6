//! Processes with different settings share one lock: each task gets as much of it as any other.

use std::{cell::Cell, rc::Rc, time::Duration};

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    store::{FencePolicy, FenceSettings},
    time::Clock,
};

use crate::support::{World, lock, millis, secs};

/// The settings of one process, and how many tasks it has.
struct Process {
    policy: FencePolicy,
    ttl: Duration,
    claim_window: Duration,
    keep_idle: Duration,
    tasks: usize,
}

impl Process {
    /// As most are.
    const USUAL: Self = Self {
        policy: FencePolicy::TimeFloor,
        ttl: secs(30),
        claim_window: secs(3),
        keep_idle: Duration::ZERO,
        tasks: 3,
    };
    const COUNTER: Self = Self { policy: FencePolicy::Counter, ..Self::USUAL };

    fn builder(&self, builder: LockRuntimeBuilder) -> LockRuntimeBuilder {
        builder.ttl(self.ttl).claim_window(self.claim_window).keep_idle(self.keep_idle)
    }
}

/// Lets a task ask again and again, for holds of so long; how often it was served.
fn ask_forever(world: &World, locks: &LockRuntime, hold: Duration) -> Rc<Cell<usize>> {
    let (lock, clock, served) = (lock(locks), world.clock().clone(), Rc::<Cell<usize>>::default());
    let counted = Rc::clone(&served);
    tokio::task::spawn_local(async move {
        loop {
            let guard = lock.acquire().wait_forever().await.unwrap();
            counted.set(counted.get() + 1);
            clock.sleep_until(clock.now() + hold).await;
            guard.release().await.unwrap();
        }
    });
    served
}

/// How often each task of each process was served, when all of them work side by side.
async fn shares(processes: &[Process], hold: Duration) -> Vec<Vec<usize>> {
    let world = World::new();
    let (mut runtimes, mut served) = (Vec::new(), Vec::new());
    for (seed, process) in (1..).zip(processes) {
        let line = world.line_with(FenceSettings::default().policy(process.policy));
        let locks = line.start(process.builder(world.builder(seed)));
        let tasks = (0..process.tasks).map(|_| ask_forever(&world, &locks, hold));
        served.push(tasks.collect::<Vec<_>>());
        runtimes.push(locks);
        world.pass(millis(1)).await;
    }
    world.pass(secs(2)).await;
    served.iter().map(|tasks| tasks.iter().map(|served| served.get()).collect()).collect()
}

async fn are_equal(processes: &[Process], hold: Duration) {
    let shares = shares(processes, hold).await;
    let all = || shares.iter().flatten().copied();
    let (least, most) = (all().min().unwrap(), all().max().unwrap());
    assert!(most * 10 <= least * 12 && least > 20, "{hold:?}: {shares:?}");
}

/// With each of them, a turn serves all the tasks of its process within its 50 ms.
const HOLDS: [Duration; 3] = [Duration::from_micros(100), millis(1), millis(5)];

#[tokio::test(flavor = "local")]
async fn a_plain_counter_beside_others_gets_its_share() {
    for hold in HOLDS {
        are_equal(&[Process::COUNTER, Process::USUAL, Process::USUAL], hold).await;
        are_equal(&[Process::USUAL, Process::COUNTER, Process::COUNTER], hold).await;
    }
}

#[tokio::test(flavor = "local")]
async fn processes_of_plain_counters_have_equal_shares_whatever_their_size() {
    for hold in HOLDS {
        let sizes = [1, 8, 3].map(|tasks| Process { tasks, ..Process::COUNTER });
        are_equal(&sizes, hold).await;
    }
}

#[tokio::test(flavor = "local")]
async fn times_and_kept_locks_change_no_share() {
    let short = || Process { ttl: millis(500), claim_window: millis(200), ..Process::USUAL };
    let kept = || Process { keep_idle: secs(5), tasks: 4, ..Process::USUAL };
    let long = || Process { ttl: secs(120), claim_window: secs(10), ..Process::COUNTER };
    let kept_counter = || Process { keep_idle: secs(2), tasks: 1, ..Process::COUNTER };
    for hold in HOLDS {
        are_equal(&[short(), kept(), long(), kept_counter()], hold).await;
        are_equal(&[kept(), short(), Process::USUAL], hold).await;
    }
}
