use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant, Mutex,
    lease::{Grant, LeaseState, LossReason},
    metric::ClassMetrics,
    outage::OutageWatch,
};
use tokio::sync::Notify;

use crate::{
    Key,
    batch::{Attempt, Batches, RenewalBatch},
    due::DueQueue,
    durations::{EARLY, LATER},
    lease::{HeldLease, Share},
    plan::RenewalPlan,
};

/// The turns that a [`Watchdog`](crate::Watchdog) watches, shared with its task.
///
/// Nothing here blocks or calls back, so callers may use it inside of their own lock.
#[derive(Debug)]
pub struct Watches {
    queue: Mutex<DueQueue<WatchedTurn>>,
    /// Changed under the lock of the queue only.
    stopped: AtomicBool,
    pub(crate) wake: Notify,
    outages: Arc<OutageWatch>,
    entropy: Arc<dyn Entropy>,
    renews: fn(bool) -> bool,
}

/// A turn that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch(pub(crate) Key);

/// What is to be done at one instant.
#[derive(Debug, Default)]
pub(crate) struct DueWork {
    pub(crate) batches: Batches,
    /// How late the renewals are.
    pub(crate) lags: Vec<Duration>,
    /// Turns that ended early, and until when their locks stay closed.
    pub(crate) lost: Vec<(Arc<Grant>, LossReason, Option<Instant>)>,
}

/// A turn, and the lease of it that is held; none while the turn is on offer.
#[derive(Debug)]
pub(crate) struct WatchedTurn {
    turn: Arc<Grant>,
    lease: Option<Arc<HeldLease>>,
    plan: RenewalPlan,
}

/// To fill the commands, so many turns are checked that are not due yet and do not fit.
const MAX_EXAMINED: usize = 8 * RenewalBatch::MAX;

impl Watches {
    /// Nothing is watched yet; a [`Watchdog`](crate::Watchdog) has to be started.
    ///
    /// `renews` decides whether a turn is renewed; its argument is whether a task holds a lease of it.
    pub fn new(
        outages: Arc<OutageWatch>,
        entropy: Arc<dyn Entropy>,
        renews: fn(is_held: bool) -> bool,
    ) -> Arc<Self> {
        let (queue, stopped) = Default::default();
        Arc::new(Self { queue, stopped, wake: Notify::new(), outages, entropy, renews })
    }

    /// What is known of the server's outages.
    pub fn outages(&self) -> &Arc<OutageWatch> {
        &self.outages
    }

    /// From now on the server is asked every two seconds, if nothing was heard of it, whether it is there.
    pub fn look_at_server(&self) {
        if self.outages.begin_looks() {
            self.wake.notify_one();
        }
    }

    /// Whether this is the process whose turns are watched, and not a fork of it.
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
        share: Share,
        now: Instant,
        metrics: Arc<ClassMetrics>,
    ) -> (Arc<HeldLease>, Option<Watch>) {
        let renewing = share.renewing;
        let lease = HeldLease::new(share, now, &self.outages, metrics);
        let fraction = self.entropy.fraction();
        let mut queue = self.queue.lock();
        if self.have_stopped() {
            return (lease, None);
        }
        let occupy = |watched: &mut WatchedTurn| {
            watched.plan.occupied(renewing, now, lease.deadline(), fraction);
            watched.lease = Some(Arc::clone(&lease));
            watched.wake_at(now)
        };
        let known = watch.and_then(|Watch(key)| Some((key, occupy(queue.get_mut(key)?))));
        let (key, at) = known.unwrap_or_else(|| {
            let turn = Arc::clone(lease.turn());
            let plan = RenewalPlan::new(turn.ttl());
            let mut watched = WatchedTurn { turn, lease: None, plan };
            let at = occupy(&mut watched);
            (queue.insert(at, watched), at)
        });
        // To check a turn too early costs less than to reorder the queue for every holder.
        if queue.at(key).is_some_and(|present| at < present) {
            queue.reschedule(key, at);
        }
        if queue.must_wake_for(at) {
            self.wake.notify_one();
        }
        (lease, Some(Watch(key)))
    }

    /// Stops renewing a turn of which no lease is held any more, and goes on watching it.
    pub fn vacate(&self, watch: Watch) {
        let mut queue = self.queue.lock();
        let left = queue.get_mut(watch.0).and_then(|watched| watched.lease.take());
        // The last reference to a lease runs its destructor: outside of every lock.
        drop((queue, left));
    }

    /// Stops watching a turn.
    pub fn forget(&self, watch: Watch) {
        drop(self.remove(watch.0));
    }

    /// As [`forget`](Self::forget). Drop what is returned outside of every lock: the last reference
    /// to a lease runs its destructor.
    pub(crate) fn remove(&self, key: Key) -> Option<WatchedTurn> {
        self.queue.lock().remove(key)
    }

    /// The leases that are held now.
    pub fn leases(&self) -> Vec<Arc<HeldLease>> {
        self.queue.lock().iter().filter_map(|watched| watched.lease.clone()).collect()
    }

    /// How many leases are held now.
    pub fn held(&self) -> usize {
        self.queue.lock().iter().filter(|watched| watched.lease.is_some()).count()
    }

    /// How many turns are watched now.
    pub fn watched(&self) -> usize {
        self.queue.lock().len()
    }

    /// Whether the watchdog's task has ended: no turn is renewed any more.
    pub fn have_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn stop(&self) {
        let queue = self.queue.lock();
        self.stopped.store(true, Ordering::SeqCst);
        drop(queue);
        self.wake.notify_one();
    }

    /// Takes what is due; `None` when the watchdog is to stop.
    pub(crate) fn take_due(&self, now: Instant) -> Option<DueWork> {
        let mut work = DueWork::default();
        let ended = self.renew_due(now, &mut work)?;
        for (key, lease) in ended {
            // Outside of the lock: a loss that is seen here wakes those who wait for it.
            let state = lease.state_at(now);
            let mut queue = self.queue.lock();
            let holder = queue.get(key).and_then(|watched| watched.lease.as_ref());
            if holder.is_none_or(|holder| !Arc::ptr_eq(holder, &lease)) {
                // The lease has another holder by now: the turn is checked again.
                continue;
            }
            match state {
                LeaseState::Lost(reason) => {
                    queue.remove(key);
                    drop(queue);
                    work.lost.push((Arc::clone(lease.turn()), reason, lease.closed_until()));
                }
                // Its holder is releasing it at this moment.
                LeaseState::Released => queue.reschedule(key, now + LATER),
                // It was extended at this moment: the turn is checked again.
                LeaseState::Held { .. } => {}
            }
        }
        Some(work)
    }

    /// Puts the renewals that are due into commands, together with those that soon are. Returns the
    /// leases that have ended; `None` when the watchdog is to stop.
    fn renew_due(&self, now: Instant, work: &mut DueWork) -> Option<Vec<(Key, Arc<HeldLease>)>> {
        let mut queue = self.queue.lock();
        if self.have_stopped() {
            return None;
        }
        let (mut ended, mut left_out) = (Vec::new(), 0);
        if queue.earliest().is_none_or(|at| at > now) {
            return Some(ended);
        }
        let due: Vec<_> = queue.due(now + EARLY).collect();
        for (at, key) in due {
            let Some(watched) = queue.get_mut(key) else { continue };
            let lag = watched.lag(now, self.renews);
            let fits = lag.is_some() && work.batches.have_room_for(watched.turn.terms());
            if at > now && !fits {
                left_out += 1;
                if !work.batches.have_room() || left_out > MAX_EXAMINED {
                    break;
                }
                continue;
            }
            if let Some(lease) = watched.lease.as_ref().filter(|lease| lease.deadline() <= now) {
                ended.push((key, Arc::clone(lease)));
                continue;
            }
            if let Some(lag) = lag {
                work.lags.push(lag);
                let patience = watched.renew(now, self.entropy.fraction());
                work.batches.add(key, &watched.turn, patience);
            }
            let next = watched.wake_at(now);
            queue.reschedule(key, next);
        }
        Some(ended)
    }

    pub(crate) fn sleep_until(&self, now: Instant, latest: Instant) -> Instant {
        self.queue.lock().sleep_until(now, latest)
    }

    /// The lease of a turn that is held now.
    pub fn holder(&self, watch: Watch) -> Option<Arc<HeldLease>> {
        self.queue.lock().get(watch.0).and_then(|watched| watched.lease.clone())
    }

    pub(crate) fn answered(&self, now: Instant, attempts: impl Iterator<Item = (Key, Attempt)>) {
        let mut queue = self.queue.lock();
        for (key, attempt) in attempts {
            let Some(watched) = queue.get_mut(key) else { continue };
            match attempt {
                Attempt::Confirmed => watched.plan.confirmed(),
                Attempt::Unconfirmed => {
                    let until = watched.lease.as_deref().map(HeldLease::deadline);
                    let until = until.unwrap_or(Instant::at(Duration::MAX));
                    watched.plan.unconfirmed(now, until, self.entropy.fraction());
                }
            }
            let at = watched.wake_at(now);
            queue.reschedule(key, at);
        }
    }

    /// Reports every lease that is still watched as lost, and returns their turns: the task ends.
    pub(crate) fn abandon(&self) -> Vec<Arc<Grant>> {
        let abandoned: Vec<WatchedTurn> = {
            let mut queue = self.queue.lock();
            self.stopped.store(true, Ordering::SeqCst);
            queue.drain()
        };
        abandoned.into_iter().map(|watched| watched.lose(LossReason::WatchdogStopped)).collect()
    }
}

impl WatchedTurn {
    /// How late its renewal is, if one is due or nearly so.
    fn lag(&self, now: Instant, renews: fn(bool) -> bool) -> Option<Duration> {
        self.plan.due_for(now).filter(|_| renews(self.lease.is_some()))
    }

    /// A renewal is sent. Returns for how long its answer is awaited.
    fn renew(&mut self, now: Instant, fraction: f64) -> Duration {
        self.plan.sent(now, fraction);
        let believed_until = self.lease.as_ref().map_or(now, |lease| lease.believed_until());
        self.plan.patience(believed_until.saturating_since(now))
    }

    pub(crate) fn lose(self, reason: LossReason) -> Arc<Grant> {
        if let Some(lease) = self.lease {
            let _ = lease.lose(reason);
        }
        self.turn
    }

    /// When to check the turn again.
    fn wake_at(&self, now: Instant) -> Instant {
        let lease = self.lease.as_deref();
        lease.map_or(now + LATER, |lease| self.plan.wake_at(now, lease.deadline()))
    }
}
