use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold::{Stamp, fencing::MemoryGate};

use super::{AMOUNT, Entries, Entry, resource};

/// Books in the memory of this process, behind a gate.
#[derive(Debug, Default)]
pub(crate) struct MemoryBooks {
    gate: MemoryGate,
    entries: Mutex<Entries>,
}

impl MemoryBooks {
    pub(super) fn enter(&self, form: u64, stamp: Stamp) -> Entry {
        let entered = self.gate.write(&resource(form), stamp, || {
            let mut entries = self.lock();
            if entries.forms.contains(&form) {
                return Entry::There;
            }
            entries.forms.push(form);
            entries.total += AMOUNT;
            Entry::New
        });
        entered.unwrap_or(Entry::Refused)
    }

    pub(super) fn read(&self) -> Entries {
        let mut entries = self.lock().clone();
        entries.forms.sort_unstable();
        entries
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
