use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant, Mutex, Ttl,
    lease::{Grant, LeaseState, LossReason},
    metric::ClassMetrics,
    outage::OutageWatch,
};
use tokio::sync::Notify;

use crate::{
    batch::{Attempt, Batch, Batches, SpareRoom},
    due::DueQueue,
    lease::{HeldLease, Share},
    plan::{RenewalPlan, Renewing},
    slots::Key,
};

/// The turns that a [`Watchdog`](crate::Watchdog) watches, shared with its task.
///
/// Nothing here blocks or calls back, so callers may use it inside of their own lock.
#[derive(Debug)]
pub struct Watches {
    state: Mutex<State>,
    /// Changed under the lock of the state only.
    stopped: AtomicBool,
    pub(crate) wake: Notify,
    outages: Arc<OutageWatch>,
    entropy: Arc<dyn Entropy>,
}

/// A turn that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch(pub(crate) Key);

/// What is to be done at one instant.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) batches: Batches,
    /// How late the renewals are.
    pub(crate) lags: Vec<Duration>,
    /// Turns that ended early, and until when their locks stay closed.
    pub(crate) lost: Vec<(Arc<Grant>, LossReason, Option<Instant>)>,
}

#[derive(Debug)]
struct State {
    queue: DueQueue<Watched>,
    renews: fn(bool) -> bool,
}

/// A turn, and the lease of it that is held; none while the turn is on offer.
#[derive(Debug)]
pub(crate) struct Watched {
    turn: Arc<Grant>,
    lease: Option<Arc<HeldLease>>,
    plan: RenewalPlan,
}

/// A turn that is due or may be renewed along: when, its key, and its held lease.
type Due = (Instant, Key, Option<Arc<HeldLease>>);

/// How far ahead of its time a renewal may be sent in a command that is sent anyway.
const EARLY: Duration = Duration::from_millis(300);
/// How many turns that are not due yet are examined to fill the commands.
const MAX_EXAMINED: usize = 8 * Batch::MAX;
/// When to look again at a turn that is on offer.
const LATER: Duration = Duration::from_secs(1);

impl Watches {
    /// Nothing is watched yet; a [`Watchdog`](crate::Watchdog) has to be started.
    ///
    /// `renews` decides whether a turn is renewed, by whether a task holds a lease of it.
    pub fn new(
        outages: Arc<OutageWatch>,
        entropy: Arc<dyn Entropy>,
        renews: fn(is_held: bool) -> bool,
    ) -> Arc<Self> {
        let state = Mutex::new(State { queue: DueQueue::default(), renews });
        let (stopped, wake) = (AtomicBool::new(false), Notify::new());
        Arc::new(Self { state, stopped, wake, outages, entropy })
    }

    /// What is known of the server's outages.
    pub fn outages(&self) -> &Arc<OutageWatch> {
        &self.outages
    }

    /// Whether this process is the one whose turns are watched, and not a fork of it.
    pub(crate) fn is_here(&self) -> bool {
        self.outages.origin().is_here(self.clock().now())
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &**self.outages.clock()
    }

    /// Takes over a share of a turn, and watches the turn if it is not watched yet.
    ///
    /// Call [`HeldLease::count`] afterwards, outside of every lock. When the watchdog's task has
    /// ended there is no watch, and the caller has to report the lease as lost.
    pub fn take(
        &self,
        watch: Option<Watch>,
        share: &Share,
        now: Instant,
        metrics: Arc<ClassMetrics>,
    ) -> (Arc<HeldLease>, Option<Watch>) {
        let lease = HeldLease::new(share, now, &self.outages, metrics);
        let fraction = self.entropy.fraction();
        let mut state = self.state.lock();
        if self.have_stopped() {
            return (lease, None);
        }
        let known = watch.filter(|watch| state.queue.get(watch.0).is_some());
        let Watch(key) = known.unwrap_or_else(|| state.insert(&lease));
        let at = state.occupy(key, &lease, share.renewing, now, fraction);
        if state.queue.must_wake_for(at) {
            self.wake.notify_one();
        }
        (lease, Some(Watch(key)))
    }

    /// Stops renewing a turn of which no lease is held any more, and goes on watching it.
    pub fn vacate(&self, watch: Watch) {
        let mut state = self.state.lock();
        let left = state.queue.get_mut(watch.0).and_then(|watched| watched.lease.take());
        drop((state, left));
    }

    /// Stops watching a turn.
    pub fn forget(&self, watch: Watch) {
        drop(self.remove(watch.0));
    }

    /// As [`forget`](Self::forget). Drop what is returned outside of every lock: the last reference
    /// to a lease runs its destructor.
    pub(crate) fn remove(&self, key: Key) -> Option<Watched> {
        self.state.lock().queue.remove(key)
    }

    /// The leases that are held now.
    pub fn leases(&self) -> Vec<Arc<HeldLease>> {
        let state = self.state.lock();
        state.queue.iter().filter_map(|watched| watched.lease.clone()).collect()
    }

    pub(crate) fn held(&self) -> usize {
        self.state.lock().queue.iter().filter(|watched| watched.lease.is_some()).count()
    }

    /// How many turns are watched now.
    pub fn watched(&self) -> usize {
        self.state.lock().queue.len()
    }

    /// Whether the watchdog's task has ended: no turn is renewed any more.
    pub fn have_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn stop(&self) {
        let state = self.state.lock();
        self.stopped.store(true, Ordering::SeqCst);
        drop(state);
        self.wake.notify_one();
    }

    /// Takes what is due; `None` when the watchdog is to stop.
    pub(crate) fn take_due(&self, now: Instant) -> Option<Work> {
        let due = self.due(now)?;
        // Outside the lock: a loss that is seen here wakes those who wait for it.
        let seen: Vec<Option<LeaseState>> =
            due.iter().map(|(.., lease)| lease.as_ref().map(|lease| lease.state_at(now))).collect();
        let mut work = Work::default();
        // In parts: a task that takes or releases a lease meanwhile does not wait for all of them.
        for (due, seen) in due.chunks(Batch::MAX).zip(seen.chunks(Batch::MAX)) {
            let mut state = self.state.lock();
            for (one, seen) in due.iter().zip(seen) {
                state.take_one(now, &*self.entropy, one, *seen, &mut work);
            }
        }
        Some(work)
    }

    /// What is due, and who holds it; `None` when the watchdog is to stop.
    fn due(&self, now: Instant) -> Option<Vec<Due>> {
        let mut state = self.state.lock();
        if self.have_stopped() {
            return None;
        }
        if state.queue.earliest().is_none_or(|at| at > now) {
            return Some(Vec::new());
        }
        state.queue.sort();
        state.fetch_ahead(state.queue.due(now + EARLY).map(|(_, key)| key).take(Batch::MAX));
        let (mut room, mut due) = (SpareRoom::default(), Vec::new());
        for (examined, (at, key)) in state.queue.due(now + EARLY).enumerate() {
            let Some(watched) = state.queue.get(key) else { continue };
            let is_renewed = (state.renews)(watched.lease.is_some());
            let renewed = is_renewed && watched.plan.due_for(now).is_some();
            let terms = watched.plan.terms();
            if at > now {
                if room.is_empty() || examined > due.len() + MAX_EXAMINED {
                    break;
                }
                if !renewed || !room.is_for(terms) {
                    continue;
                }
            }
            if renewed {
                room.add(terms);
            }
            due.push((at, key, watched.lease.clone()));
        }
        Some(due)
    }

    pub(crate) fn sleep_until(&self, now: Instant, latest: Instant) -> Instant {
        self.state.lock().queue.sleep_until(now, latest)
    }

    /// The lease of a turn that is held now.
    pub fn holder(&self, watch: Watch) -> Option<Arc<HeldLease>> {
        self.state.lock().queue.get(watch.0).and_then(|watched| watched.lease.clone())
    }

    pub(crate) fn holders(
        &self,
        keys: impl Iterator<Item = Key> + Clone,
    ) -> Vec<Option<Arc<HeldLease>>> {
        let state = self.state.lock();
        state.fetch_ahead(keys.clone());
        keys.map(|key| state.queue.get(key).and_then(|watched| watched.lease.clone())).collect()
    }

    pub(crate) fn answered(&self, now: Instant, attempts: impl Iterator<Item = (Key, Attempt)>) {
        let mut state = self.state.lock();
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

    /// Reports every lease that is still watched as lost, and returns their turns: the task ends.
    pub(crate) fn abandon(&self) -> Vec<Arc<Grant>> {
        let abandoned: Vec<Watched> = {
            let mut state = self.state.lock();
            self.stopped.store(true, Ordering::SeqCst);
            state.queue.drain().collect()
        };
        abandoned.into_iter().map(|watched| watched.lose(LossReason::WatchdogStopped)).collect()
    }
}

impl Watched {
    pub(crate) fn lose(self, reason: LossReason) -> Arc<Grant> {
        if let Some(lease) = self.lease {
            let _ = lease.lose(reason);
        }
        self.turn
    }

    fn deadline(&self) -> Option<Instant> {
        self.lease.as_deref().map(HeldLease::deadline)
    }

    fn wake_at(&self, now: Instant, deadline: Option<Instant>) -> Instant {
        deadline.map_or(now + LATER, |deadline| self.plan.wake_at(now, deadline))
    }
}

impl State {
    /// Brings what is worked on next into the processor's cache.
    ///
    /// Each step reads the same part of all leases, so that the reads overlap. One lease after
    /// another, each read would wait for the one before.
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

    fn insert(&mut self, lease: &HeldLease) -> Watch {
        let turn = Arc::clone(lease.turn());
        let plan = RenewalPlan::new(turn.terms());
        Watch(self.queue.insert(Instant::at(Duration::MAX), Watched { turn, lease: None, plan }))
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
        // Looking too early costs less than a change of the order for every holder.
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
            // The lease has changed hands: the turn is looked at again.
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
            // Its holder is releasing it at this moment.
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
