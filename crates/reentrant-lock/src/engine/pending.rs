use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::{Mutex, MutexGuard, PoisonError},
};

use leasehold_core::{Clock, Instant, LockName, StoreError};
use tokio::{select, sync::Notify};

use crate::release::Outcome;

/// The commands that the server has not confirmed: a shutdown waits for them, and reports the rest.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    jobs: Mutex<Jobs>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Jobs {
    last: u64,
    pending: BTreeMap<u64, Entry>,
    /// How many of them count against the limit.
    limited: usize,
    /// The locks of releases that failed, from a shutdown on.
    failed: Option<Vec<LockName>>,
}

#[derive(Debug)]
struct Entry {
    /// The lock that stays closed until this is done.
    closed: Option<LockName>,
    is_limited: bool,
    failure: Option<StoreError>,
}

impl Pending {
    /// More than this are not taken, beside one for each turn: the ttl ends what they are about.
    const MAX: usize = 64 * 1024;

    /// Counts a job as pending; `None` when there are too many.
    pub(super) fn add(&self, closed: Option<LockName>, is_limited: bool) -> Option<u64> {
        let mut jobs = self.lock();
        if is_limited && jobs.limited >= Self::MAX {
            jobs.failed(closed);
            return None;
        }
        jobs.limited += usize::from(is_limited);
        jobs.last += 1;
        let number = jobs.last;
        jobs.pending.insert(number, Entry { closed, is_limited, failure: None });
        Some(number)
    }

    /// An attempt has failed, for a reason that the waiting task may ask for.
    pub(super) fn attempt_failed(&self, number: u64, error: &StoreError) {
        if let Some(entry) = self.lock().pending.get_mut(&number) {
            entry.failure = Some(error.clone());
        }
    }

    /// Why the last attempt failed, if one did.
    pub(super) fn failure(&self, number: u64) -> Option<StoreError> {
        self.lock().pending.get(&number)?.failure.clone()
    }

    /// A job is done, or given up.
    pub(super) fn done(&self, number: u64, outcome: Outcome) {
        let mut jobs = self.lock();
        let Some(entry) = jobs.pending.remove(&number) else { return };
        jobs.limited -= usize::from(entry.is_limited);
        if outcome == Outcome::Unconfirmed {
            jobs.failed(entry.closed);
        }
        drop(jobs);
        self.changed.notify_waiters();
    }

    /// How many jobs are not done.
    pub(crate) fn len(&self) -> usize {
        self.lock().pending.len()
    }

    /// From now on remembers the locks whose release failed.
    pub(crate) fn remember_failures(&self) {
        self.lock().failed.get_or_insert_default();
    }

    /// Waits until every job is done, until `deadline` at most; yields the locks that stay closed.
    pub(crate) async fn drain(&self, clock: &dyn Clock, deadline: Instant) -> Vec<LockName> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before the look, so that no change is missed in between.
            changed.as_mut().enable();
            if let Some(closed) = self.closed(clock.now() >= deadline) {
                return closed;
            }
            select! {
                biased;
                () = changed => {}
                () = clock.sleep_until(deadline) => {}
            }
        }
    }

    /// The locks that stay closed, once every job is done or the time is over.
    fn closed(&self, is_over: bool) -> Option<Vec<LockName>> {
        let jobs = self.lock();
        if !jobs.pending.is_empty() && !is_over {
            return None;
        }
        let pending = jobs.pending.values().filter_map(|entry| entry.closed.as_ref());
        let failed = jobs.failed.iter().flatten();
        let closed: BTreeSet<_> = pending.chain(failed).cloned().collect();
        Some(closed.into_iter().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    fn failed(&mut self, lock: Option<LockName>) {
        if let (Some(failed), Some(lock)) = (&mut self.failed, lock)
            && failed.len() < Pending::MAX
        {
            failed.push(lock);
        }
    }
}
