use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant,
    lease::{LeaseState, LossReason},
};
use tokio::sync::Notify;

use crate::{
    batch::Batch,
    claim::Claim,
    due::DueQueue,
    lease::HeldLease,
    plan::{Attempt, RenewalPlan},
    work::Work,
};

/// What is watched, shared by the watchdog's handle and its task.
#[derive(Debug)]
pub(crate) struct Watchlist {
    state: Mutex<State>,
    pub(crate) wake: Notify,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

#[derive(Debug)]
struct State {
    queue: DueQueue<Watched>,
    sleeps_until: Instant,
    /// No claim is let in any more.
    closing: bool,
    stopped: bool,
}

/// How far ahead of its time a renewal may travel with one that is due.
const COMPANY: Duration = Duration::from_millis(300);

#[derive(Debug)]
enum Watched {
    Lease(Arc<HeldLease>, RenewalPlan),
    Claim(Arc<dyn Claim>),
}

impl Watchlist {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let state = Mutex::new(State {
            queue: DueQueue::new(),
            sleeps_until: Instant::default(),
            closing: false,
            stopped: false,
        });
        Self { state, wake: Notify::new(), clock, entropy }
    }

    /// Adds a claim; `None`, and expired at once, if it comes too late.
    pub(crate) fn add_claim(&self, at: Instant, claim: Arc<dyn Claim>) -> Option<u64> {
        let mut state = self.state();
        if state.stopped || state.closing {
            drop(state);
            claim.expire();
            return None;
        }
        Some(self.insert(&mut state, at, Watched::Claim(claim)))
    }

    /// Adds a lease in place of its claim; `None`, and lost at once, if the task has ended.
    pub(crate) fn add_lease(
        &self,
        claim: Option<u64>,
        lease: &Arc<HeldLease>,
        plan: RenewalPlan,
    ) -> Option<u64> {
        let at = plan.wake_at(lease.deadline());
        let mut state = self.state();
        let claim = claim.and_then(|claim| state.queue.remove(claim));
        if state.stopped {
            drop((state, claim));
            let _ = lease.lose(LossReason::WatchdogStopped);
            return None;
        }
        let key = self.insert(&mut state, at, Watched::Lease(Arc::clone(lease), plan));
        // Dropped outside the lock: the last reference to a claim runs its destructor.
        drop((state, claim));
        Some(key)
    }

    pub(crate) fn remove(&self, key: u64) {
        let removed = self.state().queue.remove(key);
        // Dropped outside the lock, as above.
        drop(removed);
    }

    /// Lets no claim in any more, and expires those that are here; tells how many could not be,
    /// because their answer is being taken at this moment.
    pub(crate) fn close_claims(&self) -> usize {
        let claims: Vec<(u64, Arc<dyn Claim>)> = {
            let mut state = self.state();
            state.closing = true;
            let claim = |(key, watched): (u64, &Watched)| match watched {
                Watched::Claim(claim) => Some((key, Arc::clone(claim))),
                Watched::Lease(..) => None,
            };
            state.queue.iter().filter_map(claim).collect()
        };
        let mut left = 0;
        for (key, claim) in claims {
            if claim.expire() {
                self.remove(key);
            } else {
                left += 1;
            }
        }
        left
    }

    pub(crate) fn leases(&self) -> Vec<Arc<HeldLease>> {
        let state = self.state();
        let lease = |(_, watched): (u64, &Watched)| match watched {
            Watched::Lease(lease, _) => Some(Arc::clone(lease)),
            Watched::Claim(_) => None,
        };
        state.queue.iter().filter_map(lease).collect()
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

    fn insert(&self, state: &mut State, at: Instant, watched: Watched) -> u64 {
        let key = state.queue.insert(at, watched);
        if at < state.sleeps_until {
            self.wake.notify_one();
        }
        key
    }

    /// Takes what is due; `None` when the watchdog is to stop.
    pub(crate) fn take_due(&self, now: Instant) -> Option<Work> {
        let mut work = Work::default();
        let mut state = self.state();
        if state.stopped {
            return None;
        }
        if state.queue.earliest().is_some_and(|at| at <= now) {
            let due: Vec<_> = state.queue.due(now + COMPANY).collect();
            for (at, key) in due {
                state.take_one(now, at, key, &mut work);
            }
        }
        Some(work)
    }

    /// When the task is to look again, at `latest` in any case.
    pub(crate) fn sleep_until(&self, latest: Instant) -> Instant {
        let mut state = self.state();
        let until = state.queue.earliest().map_or(latest, |at| at.min(latest));
        state.sleeps_until = until;
        until
    }

    /// A renewal that was sent at `sent_at` came to `attempt`.
    pub(crate) fn answered(&self, key: u64, lease: &HeldLease, sent_at: Instant, attempt: Attempt) {
        let (now, fraction) = (self.clock.now(), self.entropy.fraction());
        let mut state = self.state();
        if let Some(Watched::Lease(_, plan)) = state.queue.get_mut(key) {
            plan.answered(now, sent_at, attempt, fraction);
            let at = plan.wake_at(lease.deadline());
            state.queue.reschedule(key, at);
        }
    }

    /// The task ends: whatever is still watched is nobody's any more.
    pub(crate) fn abandon(&self) {
        let abandoned: Vec<Watched> = {
            let mut state = self.state();
            state.stopped = true;
            state.queue.drain().collect()
        };
        for watched in abandoned {
            match watched {
                Watched::Lease(lease, _) => {
                    let _ = lease.lose(LossReason::WatchdogStopped);
                }
                Watched::Claim(claim) => {
                    claim.expire();
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_one(&mut self, now: Instant, at: Instant, key: u64, work: &mut Work) {
        match self.queue.get_mut(key) {
            Some(Watched::Lease(lease, plan)) => {
                let state = lease.state();
                if state.is_held() {
                    if let Some(lag) = plan.due_for(now) {
                        plan.sent();
                        work.lags.push(lag);
                        Batch::collect(&mut work.batches, key, Arc::clone(lease));
                    }
                    let at = plan.wake_at(lease.deadline());
                    self.queue.reschedule(key, at);
                } else {
                    self.take_over(key, state, work);
                }
            }
            Some(Watched::Claim(claim)) if at <= now => work.expired.push((key, Arc::clone(claim))),
            _ => {}
        }
    }

    /// A lease that ended needs no watch; one that outlived its `max_hold` has to end on the
    /// server too, because its holder may never look at it again.
    fn take_over(&mut self, key: u64, state: LeaseState, work: &mut Work) {
        let over = self.queue.remove(key);
        if let (LeaseState::Lost(LossReason::MaxHold), Some(Watched::Lease(lease, _))) =
            (state, over)
        {
            work.overdue.push(lease);
        }
    }
}
