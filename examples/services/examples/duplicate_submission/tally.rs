use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use leasehold_services::Stall;

/// What was counted, by all instances and users.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    runs: Mutex<BTreeMap<u64, u64>>,
    /// Writes that the books refused, for a stale fence.
    pub(crate) refused: Count,
    /// Runs whose write is not over.
    pub(crate) writing: Count,
    /// Requests that users sent.
    pub(crate) requests: Count,
    /// Users whose own request was the one that ran.
    pub(crate) first: Count,
    /// Requests whose answer was that another runs.
    pub(crate) running: Count,
    /// The same, for a run whose instance had died.
    pub(crate) running_dead: Count,
    /// Users whose answer was that the form was done before.
    pub(crate) done: Count,
    /// Requests that failed or were never answered.
    pub(crate) failed: Count,
    pub(crate) died: AtomicBool,
    pub(crate) stall: Stall,
}

impl Tally {
    /// Counts a run of a form, and returns its number.
    pub(crate) fn run(&self, form: u64) -> u64 {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let count = runs.entry(form).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn runs(&self) -> u64 {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).values().sum()
    }
}

/// A counter that many threads change.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Counts one more, and returns the number before.
    pub(crate) fn up(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A run whose write is not over. Dropped with its instance, it is.
#[derive(Debug)]
pub(crate) struct Writing(Arc<Tally>);

impl Writing {
    pub(crate) fn begin(tally: &Arc<Tally>) -> Self {
        tally.writing.up();
        Self(Arc::clone(tally))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.writing.0.fetch_sub(1, Ordering::SeqCst);
    }
}
