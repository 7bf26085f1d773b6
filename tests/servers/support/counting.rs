//! Numbers that are counted up under a lock and behind a gate, while servers fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::{
    FenceToken, LockRuntime,
    fencing::{FenceGate, MemoryGate},
};
use tokio::task::JoinSet;

use super::wait;

/// So many grants show that work goes on.
pub(crate) const GOES_ON: u64 = 50;

/// What is counted under one lock, by many tasks.
pub(crate) struct Counting {
    name: String,
    gate: MemoryGate,
    value: AtomicU64,
    accepted: AtomicU64,
    stale: AtomicU64,
    fences: Mutex<Vec<FenceToken>>,
    is_over: AtomicBool,
}

impl Counting {
    /// Nothing is counted yet.
    pub(crate) fn under(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            gate: MemoryGate::default(),
            value: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            fences: Mutex::default(),
            is_over: AtomicBool::new(false),
        })
    }

    /// Starts tasks that count, until the end.
    pub(crate) fn start(self: &Arc<Self>, locks: &LockRuntime, tasks: usize, on: &mut JoinSet<()>) {
        (0..tasks).for_each(|_| drop(on.spawn(Arc::clone(self).count(locks.clone()))));
    }

    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::SeqCst)
    }

    /// How many writes the gate has refused.
    pub(crate) fn stale(&self) -> u64 {
        self.stale.load(Ordering::SeqCst)
    }

    /// Returns when many more were counted.
    pub(crate) async fn goes_on(&self) {
        let before = self.accepted();
        wait::until("work goes on", || self.accepted() >= before + GOES_ON).await;
    }

    /// Lets the tasks end.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Fails if a fence repeats or goes back, or an increment is lost. Call it when all tasks have
    /// ended.
    pub(crate) fn check(&self) {
        let fences = self.fences.lock().expect("no panic");
        assert!(fences.is_sorted_by(|a, b| a < b), "a fence repeats or goes back");
        assert_eq!(self.value.load(Ordering::SeqCst), self.accepted(), "an increment is lost");
    }

    /// Adds one for as long as the scene goes on; what fails is tried again.
    async fn count(self: Arc<Self>, locks: LockRuntime) {
        let lock = locks.lock(&*self.name).expect("a name");
        while !self.is_over.load(Ordering::SeqCst) {
            let Ok(guard) = lock.acquire().wait(Duration::from_secs(60)).await else { continue };
            let stamp = guard.stamp();
            // Before anything is read: a holder whose lease was lost writes no more from then on.
            if self.gate.admit(&self.name, stamp).await.is_ok() {
                let seen = self.value.load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                let write = || {
                    self.value.store(seen + 1, Ordering::SeqCst);
                    self.fences.lock().expect("no panic").push(guard.fence());
                };
                let written = self.gate.write(&self.name, stamp, write);
                let count = if written.is_ok() { &self.accepted } else { &self.stale };
                count.fetch_add(1, Ordering::SeqCst);
            }
            // Lost with its master, as a rule.
            let _ = guard.release().await;
        }
    }
}

/// Waits for the end of all tasks.
pub(crate) async fn ended(mut tasks: JoinSet<()>) {
    while let Some(ended) = wait::soon("the tasks end", tasks.join_next()).await {
        ended.expect("no panic");
    }
}

/// Times as a line of a report.
pub(crate) fn median_and_worst(mut all: Vec<Duration>) -> String {
    all.sort_unstable();
    let at = |index: usize| all.get(index).copied().unwrap_or_default();
    format!("median {:?}, worst {:?}", at(all.len() / 2), at(all.len().saturating_sub(1)))
}
