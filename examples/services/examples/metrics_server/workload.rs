use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::{LockRuntime, ReentrantLock, fencing::MemoryGate};
use tokio::{task::JoinSet, time::Instant};

/// Tasks of each runtime that want the same few locks.
const TASKS: usize = 8;
const NAMES: usize = 3;
/// How long most hold a lock, and how long a report does, which is renewed meanwhile.
const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(3);
/// How long a session lock stays with its process, and how often that uses it.
const KEPT: Duration = Duration::from_secs(1);
const OFTEN: Duration = Duration::from_millis(50);

/// The result of the work.
#[derive(Debug)]
pub(crate) struct Worked {
    /// Writes that were accepted.
    pub(crate) accepted: u64,
    /// The sum of the numbers that were written.
    pub(crate) shown: u64,
}

/// Lets tasks of some runtimes contend until an instant.
pub(crate) async fn run(
    runtimes: [&LockRuntime; 2],
    gate: &Arc<MemoryGate>,
    end: Instant,
) -> Result<Worked, Box<dyn Error + Send + Sync>> {
    let numbers: Arc<[AtomicU64; NAMES]> = Arc::default();
    let mut tasks = JoinSet::new();
    for (number, locks) in runtimes.into_iter().enumerate() {
        let session = locks.lock(format!("session/{number}"))?.class("sessions");
        tasks.spawn(visit(session.keep_idle(KEPT), end));
        for task in 0..TASKS {
            let number = task % NAMES;
            let lock = locks.lock(format!("order/{number}"))?.class("orders");
            tasks.spawn(write(lock, Arc::clone(gate), Arc::clone(&numbers), number, end));
        }
        tasks.spawn(report(locks.lock("report")?.class("reports"), end));
    }
    let accepted = tasks.join_all().await.into_iter().sum::<u64>();
    let shown = numbers.iter().map(|number| number.load(Ordering::Relaxed)).sum();
    Ok(Worked { accepted, shown })
}

/// Increments a number under its lock, by a read and a write; returns how many were accepted.
async fn write(
    lock: ReentrantLock,
    gate: Arc<MemoryGate>,
    numbers: Arc<[AtomicU64; NAMES]>,
    number: usize,
    end: Instant,
) -> u64 {
    let mut accepted = 0;
    while Instant::now() < end {
        let Ok(guard) = lock.acquire().wait(SHORT * 20).await else { continue };
        let resource = lock.name().as_str();
        // Shuts out the former holder: what is read now stays true until the write.
        if gate.write(resource, guard.stamp(), || {}).is_ok() {
            let read = numbers[number].load(Ordering::Relaxed);
            tokio::time::sleep(SHORT).await;
            let write = || numbers[number].store(read + 1, Ordering::Relaxed);
            accepted += u64::from(gate.write(resource, guard.stamp(), write).is_ok());
        }
        drop(guard);
    }
    accepted
}

/// Uses a lock again and again that no other process wants.
async fn visit(lock: ReentrantLock, end: Instant) -> u64 {
    while Instant::now() < end {
        drop(lock.acquire().wait(SHORT * 20).await);
        tokio::time::sleep(OFTEN).await;
    }
    0
}

/// Holds a lock for longer than its ttl.
async fn report(lock: ReentrantLock, end: Instant) -> u64 {
    while Instant::now() < end {
        if let Ok(guard) = lock.acquire().wait(LONG).await {
            tokio::time::sleep(LONG.min(end.saturating_duration_since(Instant::now()))).await;
            drop(guard);
        }
    }
    0
}
