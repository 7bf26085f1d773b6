use std::{
    hint::black_box,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant, Ttl,
    lease::{Grant, LeaseState, LossReason},
};
use tokio::sync::Notify;

use crate::{
    batch::{Attempt, Batch},
    company::Company,
    due::DueQueue,
    lease::{Common, HeldLease},
    plan::{RenewalPlan, Renewing},
    slots::Key,
    work::Work,
};

/// What is watched, shared by the handles and the watchdog's task.
#[derive(Debug)]
pub(crate) struct Watchlist {
    state: Mutex<State>,
    pub(crate) wake: Notify,
    common: Arc<Common>,
    entropy: Arc<dyn Entropy>,
}

#[derive(Debug)]
struct State {
    queue: DueQueue<Watched>,
    sleeps_until: Instant,
    renews: fn(bool) -> bool,
    stopped: bool,
}

/// A turn, and the lease of it that is held; none while it is on offer.
#[derive(Debug)]
struct Watched {
    turn: Arc<Grant>,
    lease: Option<Arc<HeldLease>>,
    plan: RenewalPlan,
}

/// Who holds a lease of a turn.
#[derive(Debug)]
pub(crate) enum Holder {
    /// The turn is not watched any more.
    Unwatched,
    /// Nobody, for it is on offer.
    Nobody,
    /// Whoever has this one.
    Lease(Arc<HeldLease>),
}

/// A turn that is due, or may travel with one that is: when, its key, and who holds a lease of it.
type Due = (Instant, Key, Option<Arc<HeldLease>>);

/// How far ahead of its time a renewal may travel with one that is due.
const COMPANY: Duration = Duration::from_millis(300);
/// How many turns are looked at in vain for company.
const LOOKS: usize = 8 * Batch::MAX;
/// When to look again at a turn that is on offer.
const LATER: Duration = Duration::from_secs(1);

impl Watchlist {
    pub(crate) fn new(common: Arc<Common>, entropy: Arc<dyn Entropy>) -> Self {
        let state = Mutex::new(State {
            queue: DueQueue::new(),
            sleeps_until: Instant::default(),
            renews: common.rules().renews,
            stopped: false,
        });
        Self { state, wake: Notify::new(), common, entropy }
    }

    pub(crate) fn common(&self) -> &Arc<Common> {
        &self.common
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &**self.common.clock()
    }

    /// A task took a lease; `None` if the watchdog's task has ended.
    pub(crate) fn occupy(
        &self,
        key: Option<Key>,
        lease: &Arc<HeldLease>,
        renewing: Renewing,
        now: Instant,
    ) -> Option<Key> {
        let fraction = self.entropy.fraction();
        let mut state = self.state();
        if state.stopped {
            return None;
        }
        let known = key.filter(|key| state.queue.get(*key).is_some());
        let key = known.unwrap_or_else(|| state.insert(lease));
        let at = state.occupy(key, lease, renewing, now, fraction);
        if at < state.sleeps_until {
            self.wake.notify_one();
        }
        Some(key)
    }

    pub(crate) fn vacate(&self, key: Key) {
        let mut state = self.state();
        let left = state.queue.get_mut(key).and_then(|watched| watched.lease.take());
        drop((state, left));
    }

    /// Watches a turn no longer; the lease of it that was held.
    pub(crate) fn remove(&self, key: Key) -> Option<Arc<HeldLease>> {
        // Dropped outside the lock: the last reference to a lease runs its destructor.
        let removed = self.state().queue.remove(key);
        removed.and_then(|watched| watched.lease)
    }

    pub(crate) fn leases(&self) -> Vec<Arc<HeldLease>> {
        let state = self.state();
        state.queue.iter().filter_map(|watched| watched.lease.clone()).collect()
    }

    /// How many leases are held.
    pub(crate) fn held(&self) -> usize {
        self.state().queue.iter().filter(|watched| watched.lease.is_some()).count()
    }

    pub(crate) fn len(&self) -> usize {
        self.state().queue.len()
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Tells the task to end.
    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.wake.notify_one();
    }

    /// Takes what is due; `None` when the watchdog is to stop.
    pub(crate) fn take_due(&self, now: Instant) -> Option<Work> {
        let due = self.due(now)?;
        // Outside the lock: a loss that is seen here is told to whoever watches the lease.
        let seen: Vec<Option<LeaseState>> =
            due.iter().map(|(.., lease)| lease.as_ref().map(|lease| lease.state_at(now))).collect();
        let mut work = Work::default();
        // In parts: whoever takes or gives back a lease meanwhile does not wait for all of them.
        for (due, seen) in due.chunks(Batch::MAX).zip(seen.chunks(Batch::MAX)) {
            let mut state = self.state();
            for (one, seen) in due.iter().zip(seen) {
                state.take_one(now, &*self.entropy, one, *seen, &mut work);
            }
        }
        Some(work)
    }

    /// What is due, and who holds it; `None` when the watchdog is to stop.
    fn due(&self, now: Instant) -> Option<Vec<Due>> {
        let state = self.state();
        if state.stopped {
            return None;
        }
        if state.queue.earliest().is_none_or(|at| at > now) {
            return Some(Vec::new());
        }
        state.fetch_ahead(state.queue.due(now + COMPANY).map(|(_, key)| key).take(Batch::MAX));
        let (mut company, mut due) = (Company::default(), Vec::new());
        for (looks, (at, key)) in state.queue.due(now + COMPANY).enumerate() {
            let Some(watched) = state.queue.get(key) else { continue };
            let is_renewed = (state.renews)(watched.lease.is_some());
            let renewed = is_renewed && watched.plan.due_for(now).is_some();
            let ttl = watched.plan.ttl();
            if at > now {
                if company.is_complete() || looks > due.len() + LOOKS {
                    break;
                }
                if !renewed || !company.has_room(ttl) {
                    continue;
                }
            }
            if renewed {
                company.add(ttl);
            }
            due.push((at, key, watched.lease.clone()));
        }
        Some(due)
    }

    /// When the task is to look again, at `latest` in any case.
    pub(crate) fn sleep_until(&self, latest: Instant) -> Instant {
        let mut state = self.state();
        let until = state.queue.earliest().map_or(latest, |at| at.min(latest));
        state.sleeps_until = until;
        until
    }

    /// Who holds a lease of a turn now.
    pub(crate) fn holder(&self, key: Key) -> Option<Arc<HeldLease>> {
        self.state().queue.get(key).and_then(|watched| watched.lease.clone())
    }

    /// Who holds leases of turns now.
    pub(crate) fn holders(&self, keys: impl Iterator<Item = Key> + Clone) -> Vec<Holder> {
        let state = self.state();
        state.fetch_ahead(keys.clone());
        let holder = |key| match state.queue.get(key) {
            None => Holder::Unwatched,
            Some(Watched { lease: None, .. }) => Holder::Nobody,
            Some(Watched { lease: Some(lease), .. }) => Holder::Lease(Arc::clone(lease)),
        };
        keys.map(holder).collect()
    }

    /// Renewals came to attempts.
    pub(crate) fn answered(&self, now: Instant, attempts: impl Iterator<Item = (Key, Attempt)>) {
        let mut state = self.state();
        for (key, attempt) in attempts {
            if let Some(watched) = state.queue.get_mut(key) {
                let until = watched.deadline();
                match attempt {
                    Attempt::Confirmed => watched.plan.confirmed(),
                    Attempt::Unconfirmed => {
                        let until = until.unwrap_or(Instant::at(Duration::MAX));
                        watched.plan.unconfirmed(now, until, self.entropy.fraction());
                    }
                }
                let at = watched.wake_at(now, until);
                state.queue.reschedule(key, at);
            }
        }
    }

    /// The task ends: whatever is still watched is nobody's any more.
    pub(crate) fn abandon(&self) -> Vec<Arc<Grant>> {
        let abandoned: Vec<Watched> = {
            let mut state = self.state();
            state.stopped = true;
            state.queue.drain().collect()
        };
        let lose = |watched: Watched| {
            if let Some(lease) = &watched.lease {
                let _ = lease.lose(LossReason::WatchdogStopped);
            }
            watched.turn
        };
        abandoned.into_iter().map(lose).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// When the lease that is held ends if nothing happens.
    fn deadline(&self) -> Option<Instant> {
        self.lease.as_deref().map(HeldLease::deadline)
    }

    /// When to look at it again, if its lease ends at `deadline` otherwise.
    fn wake_at(&self, now: Instant, deadline: Option<Instant>) -> Instant {
        deadline.map_or(now + LATER, |deadline| self.plan.wake_at(now, deadline))
    }
}

impl State {
    /// Reads a little of all that is about to be worked on: of very many leases none is in a cache.
    ///
    /// Where each step reads the same part of every lease, the reads overlap in the processor.
    /// Lease by lease, and behind the locks and reference counts that follow, each would wait for
    /// the one before.
    fn fetch_ahead(&self, keys: impl Iterator<Item = Key>) {
        let lease = |key| self.queue.get(key).and_then(|watched| watched.lease.as_ref());
        let leases: Vec<&Arc<HeldLease>> = keys.filter_map(lease).collect();
        let turns: Vec<&Grant> = leases.iter().map(|lease| lease.fetch()).collect();
        let parts: Vec<(Ttl, &[u8])> =
            turns.iter().map(|turn| (turn.ttl(), turn.name().as_str().as_bytes())).collect();
        for (ttl, name) in parts {
            black_box((ttl, name.first()));
        }
    }

    fn insert(&mut self, lease: &HeldLease) -> Key {
        let turn = Arc::clone(lease.turn());
        let plan = RenewalPlan::new(turn.ttl());
        self.queue.insert(Instant::at(Duration::MAX), Watched { turn, lease: None, plan })
    }

    fn occupy(
        &mut self,
        key: Key,
        lease: &Arc<HeldLease>,
        renewing: Renewing,
        now: Instant,
        fraction: f64,
    ) -> Instant {
        let Some(watched) = self.queue.get_mut(key) else { return now };
        let deadline = lease.deadline();
        watched.plan.occupied(renewing, now, deadline, fraction);
        watched.lease = Some(Arc::clone(lease));
        let at = watched.wake_at(now, Some(deadline));
        // A look that comes too early costs less than a change for every holder.
        if self.queue.at(key).is_some_and(|present| at < present) {
            self.queue.reschedule(key, at);
        }
        at
    }

    /// Does what is due for one turn, whose holder was seen a moment ago.
    fn take_one(
        &mut self,
        now: Instant,
        entropy: &dyn Entropy,
        (at, key, lease): &Due,
        seen: Option<LeaseState>,
        work: &mut Work,
    ) {
        let (renews, key) = (self.renews, *key);
        let Some(watched) = self.queue.get_mut(key) else { return };
        if watched.lease.as_ref().map(Arc::as_ptr) != lease.as_ref().map(Arc::as_ptr) {
            // Somebody else holds it by now: it is looked at again.
            return;
        }
        let horizon = watched.lease.as_deref().map(HeldLease::horizon);
        match seen {
            Some(LeaseState::Lost(reason)) => {
                let closed_until = lease.as_ref().and_then(|lease| lease.closed_until());
                work.lost.push((Arc::clone(&watched.turn), reason, closed_until));
                self.queue.remove(key);
                return;
            }
            // Its holder is just giving it back.
            Some(LeaseState::Released) => return self.queue.reschedule(key, now + LATER),
            held => {
                if renews(held.is_some())
                    && let Some(lag) = watched.plan.due_for(now)
                {
                    let left = horizon.map_or(now, |(_, belief)| belief).saturating_since(now);
                    watched.plan.sent(now, entropy.fraction());
                    work.lags.push(lag);
                    work.batches.add(key, &watched.turn, watched.plan.patience(left));
                }
            }
        }
        let next = watched.wake_at(now, horizon.map(|(deadline, _)| deadline));
        if *at <= now || next != *at {
            self.queue.reschedule(key, next);
        }
    }
}
