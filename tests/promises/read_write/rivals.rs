//! Processes that read and write under random faults: no writer believes beside anybody.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold::{
    Fence, Lease, LockRuntime, ReadLease,
    error::AcquireError,
    time::{Clock, Instant},
};
use leasehold_core::Entropy;
use leasehold_testkit::{
    CommandKind, Fault, FaultyStore, Gate, ManualClock, Rule, SeededEntropy,
    faulty::{PushFault, PushRule},
};

use crate::support::{Process, World, millis, secs, step};

const TTL: Duration = Duration::from_secs(1);
const ROUNDS: usize = 4;
const TASKS: u64 = 3;

/// Who has been let in, whether it still believes or not.
#[derive(Debug, Default)]
struct Believers {
    writers: Vec<Lease>,
    readers: Vec<ReadLease>,
    /// Who had which fence: a writer, or readers.
    fences: BTreeMap<Fence, bool>,
    most_readers: usize,
}

impl Believers {
    fn writes(&mut self, lease: Lease) {
        let before = self.fences.insert(lease.fence(), true);
        assert_eq!(before, None, "{lease:?} has the fence of another");
        self.writers.push(lease);
        self.look();
    }

    fn reads(&mut self, lease: ReadLease) {
        let before = self.fences.insert(lease.fence(), false);
        assert_ne!(before, Some(true), "{lease:?} has the fence of a writer");
        self.readers.push(lease);
        self.look();
    }

    /// No writer believes while another or a reader does, and readers have one fence.
    fn look(&mut self) {
        self.writers.retain(Lease::is_held);
        self.readers.retain(ReadLease::is_held);
        let (writers, readers) = (&self.writers, &self.readers);
        assert!(writers.len() <= 1, "{writers:?}");
        assert!(writers.is_empty() || readers.is_empty(), "{writers:?} beside {readers:?}");
        let fence = readers.first().map(ReadLease::fence);
        assert!(readers.iter().all(|one| Some(one.fence()) == fence), "{readers:?}");
        self.most_readers = self.most_readers.max(readers.len());
    }
}

/// Three processes of three tasks, while a seed decides what goes wrong; the most readers at once.
fn run(seed: u64) -> usize {
    let world = World::new();
    let chaos = SeededEntropy::new(seed ^ 0xc4a0_5000);
    let lines = [world.clone(), world.another_line(), world.another_line()];
    let mut processes = [Process::new(), Process::new(), Process::new()];
    let believers = Arc::<Mutex<Believers>>::default();
    let (mut troubles, mut workers) = (Vec::new(), Vec::new());
    for (number, (line, process)) in (0..).zip(lines.iter().zip(&processes)) {
        for fault in [PushFault::Lose, PushFault::Delay, PushFault::Duplicate] {
            line.store.inject_push(PushRule::new(fault).nth(1 + chaos.bits() % 4));
        }
        troubles.extend((0..6).map(|_| trouble(&chaos, &line.store)));
        let locks = process.within(|| line.start(line.builder(seed * 3 + number).ttl(TTL)));
        for task in 0..TASKS {
            let worker = Worker {
                locks: locks.clone(),
                clock: world.clock().clone(),
                entropy: SeededEntropy::new(seed * 7 + number * TASKS + task),
                believers: Arc::clone(&believers),
            };
            workers.push(process.spawn(worker.work()));
        }
    }
    let courier = Process::new();
    for stop in 0..100_000 {
        let now = world.clock().now();
        for process in &processes {
            process.run(now);
        }
        let mut present = believers.lock().unwrap();
        present.look();
        if workers.iter().all(tokio::task::JoinHandle::is_finished) {
            return present.most_readers;
        }
        drop(present);
        for (gate, opens) in &troubles {
            if now >= *opens {
                gate.open();
            }
        }
        if chaos.fraction() < 0.01 {
            let victim = usize::try_from(chaos.bits() % 3).unwrap();
            processes[victim].pause_until(now + between(&chaos, 100, 2_000));
        }
        if stop % 32 == 0 {
            for line in &lines {
                line.store.deliver_pushes();
                let store = line.store.clone();
                drop(courier.spawn(async move { drop(store.deliver_late().await) }));
            }
            courier.run(now);
        }
        step(world.clock(), &processes, millis(20));
    }
    panic!("seed {seed} does not come to an end");
}

fn between(entropy: &SeededEntropy, least: u64, most: u64) -> Duration {
    millis(least) + millis(most.saturating_sub(least)).mul_f64(entropy.fraction())
}

/// A fault, and the instant at which what it delayed goes on.
fn trouble(chaos: &SeededEntropy, store: &FaultyStore) -> (Gate, Instant) {
    let gate = Gate::new();
    let fault = match chaos.bits() % 8 {
        0 => Fault::LoseRequest,
        1 => Fault::LoseReply,
        2 => Fault::LateRequest,
        3 => Fault::Duplicate,
        4 => Fault::Delay(gate.clone()),
        _ => Fault::DelayReply(gate.clone()),
    };
    let kind = match chaos.bits() % 8 {
        0 => CommandKind::Renew,
        1 | 2 => CommandKind::Release,
        3 => CommandKind::Withdraw,
        4 => CommandKind::Heartbeat,
        _ => CommandKind::Acquire,
    };
    store.inject(Rule::new(fault).on(kind).nth(1 + chaos.bits() % 6));
    (gate, ManualClock::START + between(chaos, 0, 6_000))
}

struct Worker {
    locks: LockRuntime,
    clock: ManualClock,
    entropy: SeededEntropy,
    believers: Arc<Mutex<Believers>>,
}

impl Worker {
    async fn work(self) {
        for _ in 0..ROUNDS {
            self.sleep(between(&self.entropy, 0, 100)).await;
            let reads = self.entropy.fraction() < 0.7;
            let ended = if reads { self.read().await } else { self.write().await };
            match ended {
                Ok(()) | Err(AcquireError::Timeout(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn read(&self) -> Result<(), AcquireError> {
        let lock = self.locks.rw_lock(World::NAME).unwrap();
        // Half of the processes keep their part.
        let lock = if self.entropy.fraction() < 0.5 { lock } else { lock.keep_idle(secs(0)) };
        let guard = lock.read().wait(secs(5)).await?;
        self.believers.lock().unwrap().reads(guard.lease());
        self.sleep(between(&self.entropy, 1, 300)).await;
        drop(guard.release().await);
        Ok(())
    }

    async fn write(&self) -> Result<(), AcquireError> {
        let lock = self.locks.rw_lock(World::NAME).unwrap();
        let guard = lock.write().wait(secs(5)).await?;
        self.believers.lock().unwrap().writes(guard.lease());
        self.sleep(between(&self.entropy, 1, 300)).await;
        drop(guard.release().await);
        Ok(())
    }

    async fn sleep(&self, time: Duration) {
        self.clock.sleep_until(self.clock.now() + time).await;
    }
}

#[test]
fn no_writer_believes_beside_anybody() {
    let seeds = std::env::var("LEASEHOLD_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let most = (0..seeds.unwrap_or(100)).map(run).max();
    assert!(most > Some(2), "readers share: {most:?}");
}
