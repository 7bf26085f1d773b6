use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold::{LockName, Stamp, time::Instant};
use leasehold_fencing::{Verdict, judge};
use leasehold_testkit::{Event, History, sim::Spy};

/// The storages behind the locks: one counter per name, behind a gate that checks fences.
#[derive(Debug, Clone)]
pub(crate) struct Storages {
    by_name: Arc<BTreeMap<LockName, Mutex<Storage>>>,
}

#[derive(Debug)]
struct Storage {
    history: History,
    highest: Option<Stamp>,
    counter: u64,
    visits: u64,
}

impl Storages {
    /// Empty storages, which tell the spy's histories what they accept.
    pub(crate) fn new(names: &[LockName], spy: &Spy) -> Self {
        let storage = |name: &LockName| {
            let history = spy.history(name);
            Mutex::new(Storage { history, highest: None, counter: 0, visits: 0 })
        };
        let by_name = names.iter().map(|name| (name.clone(), storage(name))).collect();
        Self { by_name: Arc::new(by_name) }
    }

    /// Reads the counter, unless a newer fence was seen; older ones are shut out from now on.
    pub(crate) fn read(&self, name: &LockName, stamp: Stamp, at: Instant) -> Option<u64> {
        let mut storage = self.storage(name);
        storage.admits(stamp, at).then_some(storage.counter)
    }

    /// Writes the counter, unless a newer fence was seen.
    pub(crate) fn write(&self, name: &LockName, stamp: Stamp, at: Instant, value: u64) {
        let mut storage = self.storage(name);
        if storage.admits(stamp, at) {
            storage.counter = value;
            storage.history.record(Event::Incremented { worker: 0 });
        }
    }

    /// Tells the histories what the counters show in the end.
    pub(crate) fn close(&self) {
        for storage in self.by_name.values() {
            let storage = lock(storage);
            storage.history.record(Event::CounterRead { value: storage.counter });
        }
    }

    fn storage(&self, name: &LockName) -> MutexGuard<'_, Storage> {
        lock(&self.by_name[name])
    }
}

impl Storage {
    fn admits(&mut self, stamp: Stamp, at: Instant) -> bool {
        let accepted = matches!(judge(self.highest, stamp), Verdict::Admit(_));
        if accepted {
            self.highest = Some(stamp);
        }
        self.visits += 1;
        let (fence, lease, order) = (stamp.fence, stamp.lease, self.visits);
        self.history.record(Event::Wrote { fence, lease, at, order, accepted });
        accepted
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
