use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold::{Stamp, fencing::MemoryGate};

use super::{Entry, resource};

/// A book in the memory of this process, behind a gate, or without one to show the damage.
#[derive(Debug)]
pub(crate) struct MemoryBook {
    gate: Option<MemoryGate>,
    journal: Mutex<Vec<(u64, u64)>>,
}

impl MemoryBook {
    pub(super) fn new(fenced: bool) -> Self {
        Self { gate: fenced.then(MemoryGate::new), journal: Mutex::default() }
    }

    pub(super) fn last(&self, customer: u64, stamp: Stamp) -> Option<u64> {
        let last = || {
            let journal = self.lock();
            journal.iter().rev().find(|order| order.0 == customer).map_or(0, |order| order.1)
        };
        self.guarded(customer, stamp, last)
    }

    pub(super) fn enter(&self, order: (u64, u64), stamp: Stamp) -> Entry {
        let entered = self.guarded(order.0, stamp, || self.lock().push(order));
        entered.map_or(Entry::Refused, |()| Entry::Done)
    }

    pub(super) fn journal(&self) -> Vec<(u64, u64)> {
        self.lock().clone()
    }

    fn guarded<T>(&self, customer: u64, stamp: Stamp, access: impl FnOnce() -> T) -> Option<T> {
        match &self.gate {
            Some(gate) => gate.write(&resource(customer), stamp, access).ok(),
            None => Some(access()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
