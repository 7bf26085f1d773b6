//! Numbers that are counted up under a lock and behind a gate, while servers fail.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::{
    Guard, LockRuntime,
    fencing::{FenceGate, MemoryGate},
    time::{Clock, Instant, SystemClock},
};
use leasehold_testkit::{
    Event, History,
    history::{Summary, Worker},
};
use tokio::task::JoinSet;

use crate::support::wait;

/// So many increments show that work goes on.
const GOES_ON: u64 = 50;
/// How long a section takes.
const HOLD: Duration = Duration::from_millis(1);

/// What is counted under one lock, by many tasks of this process.
pub(super) struct Counting {
    name: String,
    gate: MemoryGate,
    value: AtomicU64,
    accepted: AtomicU64,
    history: History,
    is_over: AtomicBool,
}

impl Counting {
    /// Nothing is counted yet.
    pub(super) fn under(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            gate: MemoryGate::default(),
            value: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            history: History::new(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Starts tasks that count, until the end.
    pub(super) fn start(self: &Arc<Self>, locks: &LockRuntime, tasks: u64, on: &mut JoinSet<()>) {
        (0..tasks).for_each(|task| drop(on.spawn(Arc::clone(self).count(task, locks.clone()))));
    }

    /// How many increments were accepted.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Returns when many more were counted.
    pub(super) async fn goes_on(&self) {
        let before = self.accepted();
        wait::until("work goes on", || self.accepted() >= before + GOES_ON).await;
    }

    /// Lets the tasks end.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Checks what happened. Call it when all tasks have ended.
    pub(super) fn check(&self) -> Summary {
        self.history.record(Event::CounterRead { value: self.value.load(Ordering::SeqCst) });
        self.history.check().unwrap_or_else(|found| panic!("{}: {found:#?}", self.name))
    }

    /// Adds one for as long as the scene goes on; what fails is tried again.
    async fn count(self: Arc<Self>, worker: Worker, locks: LockRuntime) {
        let lock = locks.lock(&*self.name).expect("a name");
        while !self.is_over.load(Ordering::SeqCst) {
            let asked_at = SystemClock.now();
            let Ok(guard) = lock.acquire().wait(Duration::from_secs(60)).await else { continue };
            self.tell_granted(worker, &guard, asked_at);
            self.increment(worker, &guard).await;
            let (lease, at) = (guard.id(), SystemClock.now());
            let released = guard.release().await;
            self.history.record(match released {
                Ok(_) => Event::Released { lease, at },
                Err(_) => Event::Lost { lease, at },
            });
        }
    }

    fn tell_granted(&self, worker: Worker, guard: &Guard, asked_at: Instant) {
        let (fence, lease, granted_at) = (guard.fence(), guard.id(), SystemClock.now());
        self.history.record(Event::Granted { worker, fence, lease, asked_at, granted_at });
    }

    async fn increment(&self, worker: Worker, guard: &Guard) {
        let (fence, lease, stamp) = (guard.fence(), guard.id(), guard.stamp());
        // Before anything is read: a holder whose lease was lost writes no more from then on.
        if self.gate.admit(&self.name, stamp).await.is_err() {
            return;
        }
        let seen = self.value.load(Ordering::SeqCst);
        tokio::time::sleep(HOLD).await;
        let at = SystemClock.now();
        let write = || {
            self.value.store(seen + 1, Ordering::SeqCst);
            self.accepted.fetch_add(1, Ordering::SeqCst)
        };
        let order = self.gate.write(&self.name, stamp, write).ok();
        let (accepted, order) = (order.is_some(), order.unwrap_or_default());
        self.history.record(Event::Wrote { fence, lease, at, order, accepted });
        if accepted {
            self.history.record(Event::Incremented { worker });
        }
    }
}

/// Waits for the end of all tasks.
pub(super) async fn ended(mut tasks: JoinSet<()>) {
    while let Some(ended) = wait::soon("the tasks end", tasks.join_next()).await {
        ended.expect("no panic");
    }
}
