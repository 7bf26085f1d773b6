use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
};

use leasehold_core::{AtHome, Clock, Instant, LockName, Mutex, Sleep, StoreError};
use leasehold_watchdog::{HeldLease, Key, Slots};
use tokio::{select, sync::Notify};

use crate::{
    cohort::{TurnId, unheard},
    release::Outcome,
};

use super::{
    core::Engine,
    sending::{Job, Sending},
};

/// The commands that the server has not confirmed: a shutdown waits for them, and reports the rest.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    jobs: Mutex<Jobs>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Jobs {
    pending: Slots<Entry>,
    /// How many of them count against the limit.
    limited: usize,
    /// The locks of releases that failed, from a shutdown on.
    failed: Option<Vec<LockName>>,
    /// The locks of releases that were dropped, and are not told yet.
    left: BTreeSet<LockName>,
}

#[derive(Debug)]
struct Entry {
    /// The lock that stays closed until this is done.
    closed: Option<LockName>,
    is_limited: bool,
    failure: Option<StoreError>,
}

impl Pending {
    /// The most jobs beside releases of turns and the backlog. What exceeds it ends by its ttl.
    const MAX: usize = 64 * 1024;

    /// Counts a job as pending; `None` when there are too many.
    pub(super) fn add(&self, closed: Option<LockName>, is_limited: bool) -> Option<Key> {
        let mut jobs = self.jobs.lock();
        if is_limited && jobs.limited >= Self::MAX {
            jobs.failed(closed);
            return None;
        }
        jobs.limited += usize::from(is_limited);
        Some(jobs.pending.insert(Entry { closed, is_limited, failure: None }))
    }

    /// An attempt has failed, for a reason that the waiting task may ask for.
    pub(super) fn attempt_failed(&self, key: Key, error: &StoreError) {
        if let Some(entry) = self.jobs.lock().pending.get_mut(key) {
            entry.failure = Some(error.clone());
        }
    }

    pub(super) fn failure(&self, key: Key) -> Option<StoreError> {
        self.jobs.lock().pending.get(key)?.failure.clone()
    }

    /// A job waits for the end of an outage, where it counts against another limit.
    pub(super) fn on_postponed(&self, key: Key) {
        let jobs = &mut *self.jobs.lock();
        if let Some(entry) = jobs.pending.get_mut(key) {
            jobs.limited -= usize::from(std::mem::take(&mut entry.is_limited));
        }
    }

    pub(super) fn done(&self, key: Key, outcome: Outcome) {
        self.jobs.lock().done(key, outcome);
        self.changed.notify_waiters();
    }

    /// A release is dropped before its end: its tokio runtime stops. Yields the locks of all such
    /// releases with the last of them.
    pub(super) fn left(&self, key: Key, name: &LockName) -> BTreeSet<LockName> {
        let mut jobs = self.jobs.lock();
        if jobs.left.len() < Self::MAX {
            jobs.left.insert(name.clone());
        }
        jobs.done(key, Outcome::Unconfirmed);
        let has_more = jobs.pending.iter().any(|entry| entry.closed.is_some());
        let left = if has_more { BTreeSet::new() } else { std::mem::take(&mut jobs.left) };
        drop(jobs);
        self.changed.notify_waiters();
        left
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.lock().pending.len()
    }

    pub(crate) fn remember_failures(&self) {
        self.jobs.lock().failed.get_or_insert_default();
    }

    /// Waits for every release until `deadline`, and for every other job until `soon`; yields the
    /// locks that stay closed.
    pub(crate) async fn drain(
        &self,
        clock: &dyn Clock,
        soon: Instant,
        deadline: Instant,
    ) -> Vec<LockName> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before the look, so that no change is missed in between.
            changed.as_mut().enable();
            let now = clock.now();
            if now >= deadline || !self.jobs.lock().is_awaited(now >= soon) {
                return self.unconfirmed();
            }
            let until = if now < soon { soon.min(deadline) } else { deadline };
            select! {
                biased;
                () = changed => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    /// The locks of releases that are under way.
    pub(super) fn closed(&self) -> BTreeSet<LockName> {
        self.jobs.lock().closed().cloned().collect()
    }

    /// The locks of releases that are under way, or have failed since a shutdown began.
    fn unconfirmed(&self) -> Vec<LockName> {
        let jobs = self.jobs.lock();
        let failed = jobs.failed.iter().flatten();
        let locks: BTreeSet<_> = jobs.closed().chain(failed).cloned().collect();
        locks.into_iter().collect()
    }
}

impl Jobs {
    fn closed(&self) -> impl Iterator<Item = &LockName> {
        self.pending.iter().filter_map(|entry| entry.closed.as_ref())
    }

    /// Whether a shutdown waits for one; in the end only for releases.
    fn is_awaited(&self, only_releases: bool) -> bool {
        self.pending.iter().any(|entry| !only_releases || entry.closed.is_some())
    }

    fn done(&mut self, key: Key, outcome: Outcome) {
        let Some(entry) = self.pending.remove(key) else { return };
        self.limited -= usize::from(entry.is_limited);
        if outcome == Outcome::Unconfirmed {
            self.failed(entry.closed);
        }
    }

    fn failed(&mut self, lock: Option<LockName>) {
        if let (Some(failed), Some(lock)) = (&mut self.failed, lock)
            && failed.len() < Pending::MAX
        {
            failed.push(lock);
        }
    }
}

/// A job in the hands of the task that waits for it. Dropped before it is done, as with a cancelled
/// future, it goes on in the runtime from where it stands.
///
/// It counts as pending. Never drop it inside of a lock of the engine.
#[must_use = "dropped at once, it goes on in the runtime"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    key: Key,
    /// The lease whose turn ends with it, and whose holder waits for the answer.
    attended: Option<Arc<HeldLease>>,
    work: Option<Work>,
}

type Work = Pin<Box<dyn Future<Output = Result<Outcome, StoreError>> + Send>>;

impl Engine {
    /// Makes a job ready; `None` when too many are pending.
    pub(super) fn arm(&self, job: Job, attended: Option<Arc<HeldLease>>) -> Option<Cleanup> {
        let engine = self.me.upgrade()?;
        let sending = Sending::new(&engine, job)?;
        let key = sending.key;
        Some(Cleanup { engine, key, attended, work: Some(Box::pin(sending.run())) })
    }
}

impl Cleanup {
    /// Waits until the job is done, and until `until` at most; then the job goes on in the runtime.
    ///
    /// `is_enough`: a failed first attempt also ends the wait. `is_its_deadline`: `until` is that
    /// of the first attempt, which fails by itself then, so that no timer is set before.
    pub(crate) fn wait(
        mut self,
        until: Instant,
        mut is_its_deadline: bool,
        is_enough: bool,
    ) -> impl Future<Output = Result<Outcome, StoreError>> + Send + Unpin {
        let (mut timer, mut is_first_poll) = (None::<Sleep>, true);
        poll_fn(move |cx| {
            // It is first polled where it was made.
            if !std::mem::take(&mut is_first_poll)
                && let Err(error) = self.engine.check_process()
            {
                return Poll::Ready(Err(error));
            }
            let Some(work) = &mut self.work else { return Poll::Ready(Err(unheard())) };
            if let Poll::Ready(result) = work.as_mut().poll(cx) {
                self.work = None;
                return Poll::Ready(result);
            }
            let pending = &self.engine.pending;
            if is_enough && let Some(failure) = pending.failure(self.key) {
                return Poll::Ready(Err(failure));
            }
            // The first attempt has a deadline of its own: as a rule no timer is needed.
            if std::mem::take(&mut is_its_deadline) {
                return Poll::Pending;
            }
            let clock = &self.engine.clock;
            let timer = timer.get_or_insert_with(|| clock.sleep_until(until));
            if timer.as_mut().poll(cx).is_pending() && clock.now() < until {
                return Poll::Pending;
            }
            Poll::Ready(Err(pending.failure(self.key).unwrap_or_else(unheard)))
        })
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if self.engine.is_forked() {
            return std::mem::forget(work);
        }
        if let Some(lease) = &self.attended {
            let turn = TurnId::of(lease.turn());
            self.engine.with(lease.name(), |member, _| member.cohort.on_release_left(turn));
        }
        let Self { engine, .. } = self;
        let work = AtHome::new(engine.outages().origin(), &engine.clock, work);
        drop(engine.handle().spawn(work));
    }
}
