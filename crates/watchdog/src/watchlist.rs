use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant,
    lease::{Grant, LeaseState, LossReason},
};
use tokio::sync::Notify;

use crate::{
    batch::Batch,
    due::DueQueue,
    lease::{Common, HeldLease},
    plan::{Attempt, RenewalPlan},
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

/// A turn that is due: when, its key, and who holds a lease of it.
type Due = (Instant, u64, Option<Arc<HeldLease>>);

/// How far ahead of its time a renewal may travel with one that is due.
const COMPANY: Duration = Duration::from_millis(300);
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
        key: Option<u64>,
        lease: &Arc<HeldLease>,
        now: Instant,
    ) -> Option<u64> {
        let fraction = self.entropy.fraction();
        let mut state = self.state();
        if state.stopped {
            return None;
        }
        let known = key.filter(|key| state.queue.get_mut(*key).is_some());
        let key = known.unwrap_or_else(|| state.insert(lease));
        let at = state.occupy(key, lease, now, fraction);
        if at < state.sleeps_until {
            self.wake.notify_one();
        }
        Some(key)
    }

    pub(crate) fn vacate(&self, key: u64) {
        let mut state = self.state();
        let left = state.queue.get_mut(key).and_then(|watched| watched.lease.take());
        drop((state, left));
    }

    /// Watches a turn no longer; the lease of it that was held.
    pub(crate) fn remove(&self, key: u64) -> Option<Arc<HeldLease>> {
        // Dropped outside the lock: the last reference to a lease runs its destructor.
        let removed = self.state().queue.remove(key);
        removed.and_then(|watched| watched.lease)
    }

    pub(crate) fn leases(&self) -> Vec<Arc<HeldLease>> {
        let state = self.state();
        state.queue.iter().filter_map(|(_, watched)| watched.lease.clone()).collect()
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
        let mut work = Work::default();
        for (at, key, lease) in due {
            // Outside the lock: a loss that is seen here is told to whoever watches the lease.
            let seen = lease.map(|lease| (lease.state(), lease));
            self.state().take_one(now, at, key, seen, &mut work);
        }
        Some(work)
    }

    /// What is due, and who holds it; `None` when the watchdog is to stop.
    fn due(&self, now: Instant) -> Option<Vec<Due>> {
        let mut state = self.state();
        if state.stopped {
            return None;
        }
        if state.queue.earliest().is_none_or(|at| at > now) {
            return Some(Vec::new());
        }
        let due: Vec<_> = state.queue.due(now + COMPANY).collect();
        let holder = |(at, key)| {
            let lease = state.queue.get_mut(key).and_then(|watched| watched.lease.clone());
            (at, key, lease)
        };
        Some(due.into_iter().map(holder).collect())
    }

    /// When the task is to look again, at `latest` in any case.
    pub(crate) fn sleep_until(&self, latest: Instant) -> Instant {
        let mut state = self.state();
        let until = state.queue.earliest().map_or(latest, |at| at.min(latest));
        state.sleeps_until = until;
        until
    }

    /// Who holds a lease of a turn now.
    pub(crate) fn holder(&self, key: u64) -> Option<Arc<HeldLease>> {
        self.state().queue.get_mut(key).and_then(|watched| watched.lease.clone())
    }

    /// Whether a turn is still watched.
    pub(crate) fn watches(&self, key: u64) -> bool {
        self.state().queue.get_mut(key).is_some()
    }

    /// A renewal that was sent at `sent_at` came to `attempt`.
    pub(crate) fn answered(&self, key: u64, sent_at: Instant, attempt: Attempt) {
        let (now, fraction) = (self.clock().now(), self.entropy.fraction());
        let mut state = self.state();
        if let Some(watched) = state.queue.get_mut(key) {
            watched.plan.answered(now, sent_at, attempt, fraction);
            let at = watched.wake_at(now);
            state.queue.reschedule(key, at);
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
    fn wake_at(&self, now: Instant) -> Instant {
        match &self.lease {
            Some(lease) => self.plan.wake_at(lease.deadline()),
            None => now + LATER,
        }
    }
}

impl State {
    fn insert(&mut self, lease: &HeldLease) -> u64 {
        let turn = Arc::clone(lease.turn());
        let plan = RenewalPlan::new(turn.ttl());
        self.queue.insert(Instant::at(Duration::MAX), Watched { turn, lease: None, plan })
    }

    fn occupy(&mut self, key: u64, lease: &Arc<HeldLease>, now: Instant, fraction: f64) -> Instant {
        let Some(watched) = self.queue.get_mut(key) else { return now };
        watched.plan.occupied(lease.renewing(), now, lease.deadline(), fraction);
        watched.lease = Some(Arc::clone(lease));
        let at = watched.wake_at(now);
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
        at: Instant,
        key: u64,
        seen: Option<(LeaseState, Arc<HeldLease>)>,
        work: &mut Work,
    ) {
        let renews = self.renews;
        let Some(watched) = self.queue.get_mut(key) else { return };
        let is_same = match (&watched.lease, &seen) {
            (Some(present), Some((_, lease))) => Arc::ptr_eq(present, lease),
            (None, None) => true,
            _ => false,
        };
        let closed_until = seen.as_ref().and_then(|(_, lease)| lease.closed_until());
        match seen.map(|(state, _)| state) {
            // Somebody else holds it by now: it is looked at again.
            _ if !is_same => return,
            Some(LeaseState::Lost(reason)) => {
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
                    watched.plan.sent();
                    work.lags.push(lag);
                    Batch::collect(&mut work.batches, key, &watched.turn);
                }
            }
        }
        let next = watched.wake_at(now);
        if at <= now || next < at {
            self.queue.reschedule(key, next);
        }
    }
}
