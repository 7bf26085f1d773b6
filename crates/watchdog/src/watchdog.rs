use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::{
    Clock, Entropy, Instant, LockStore,
    lease::{LeaseState, LossReason},
    metric::Metrics,
};
use tokio::{runtime::Handle, sync::Notify};

use crate::{
    batch::Batch,
    claim::Claim,
    driver::Driver,
    due::DueQueue,
    lease::HeldLease,
    plan::{Attempt, RenewalPlan},
};

/// Renews the leases of one runtime and notices the ones that end.
///
/// One task does it all. It dies with this handle, and if it dies before, every lease it watched
/// becomes lost at once: nobody believes in a lease that nobody renews.
#[derive(Debug)]
pub struct Watchdog {
    shared: Arc<Shared>,
}

/// What the watchdog watches, to be given back when it need not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch(u64);

impl Watchdog {
    /// Starts the task on a tokio runtime.
    pub fn start(
        runtime: &Handle,
        store: Arc<dyn LockStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: DueQueue::new(),
                sleeps_until: Instant::default(),
                stopped: false,
            }),
            wake: Notify::new(),
            clock,
            entropy,
        });
        let driver = Driver::new(Arc::clone(&shared), store, metrics);
        drop(runtime.spawn(driver.run()));
        Self { shared }
    }

    /// Watches a claim: at `at` it expires, unless it was given back before.
    pub fn watch_claim(&self, at: Instant, claim: Arc<dyn Claim>) -> Watch {
        let mut state = self.shared.state();
        if state.stopped {
            drop(state);
            claim.expire();
            return Watch(u64::MAX);
        }
        self.shared.insert(&mut state, at, Watched::Claim(claim))
    }

    /// Watches a lease in place of the claim that it came from, and renews it if it `renews`.
    pub fn watch_lease(&self, claim: Option<Watch>, lease: &Arc<HeldLease>, renews: bool) -> Watch {
        let plan = if renews {
            RenewalPlan::new(lease.since(), lease.ttl(), self.shared.entropy.fraction())
        } else {
            RenewalPlan::never(lease.ttl())
        };
        let at = plan.wake_at(lease.deadline());
        let mut state = self.shared.state();
        let claim = claim.and_then(|claim| state.queue.remove(claim.0));
        if state.stopped {
            drop(state);
            let _ = lease.lose(LossReason::WatchdogStopped);
            return Watch(u64::MAX);
        }
        let watch = self.shared.insert(&mut state, at, Watched::Lease(Arc::clone(lease), plan));
        // Dropped outside the lock, as in `forget`.
        drop((state, claim));
        watch
    }

    /// Watches a lease or claim no longer.
    pub fn forget(&self, watch: Watch) {
        let forgotten = self.shared.state().queue.remove(watch.0);
        // Dropped outside the lock: the last reference to a lease runs its destructor.
        drop(forgotten);
    }

    /// Lets every claim go whose answer has not been taken yet, as if its window were over.
    pub fn expire_claims(&self) {
        let claims: Vec<Arc<dyn Claim>> = {
            let state = self.shared.state();
            let claim = |watched: &Watched| match watched {
                Watched::Claim(claim) => Some(Arc::clone(claim)),
                Watched::Lease(..) => None,
            };
            state.queue.iter().filter_map(claim).collect()
        };
        for claim in claims {
            claim.expire();
        }
    }

    /// Whether its task has ended: every claim expires at once, and no lease is renewed any more.
    pub fn has_stopped(&self) -> bool {
        self.shared.state().stopped
    }

    /// How many leases and claims are watched at present.
    pub fn watched(&self) -> usize {
        self.shared.state().queue.len()
    }

    /// The leases that are watched at present.
    pub fn leases(&self) -> Vec<Arc<HeldLease>> {
        let state = self.shared.state();
        let lease = |watched: &Watched| match watched {
            Watched::Lease(lease, _) => Some(Arc::clone(lease)),
            Watched::Claim(_) => None,
        };
        state.queue.iter().filter_map(lease).collect()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.state().stopped = true;
        self.shared.wake.notify_one();
    }
}

/// What the handle and the task share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) wake: Notify,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

#[derive(Debug)]
struct State {
    queue: DueQueue<Watched>,
    sleeps_until: Instant,
    stopped: bool,
}

#[derive(Debug)]
enum Watched {
    Lease(Arc<HeldLease>, RenewalPlan),
    Claim(Arc<dyn Claim>),
}

/// What is to be done at one instant.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Renewals to send.
    pub(crate) batches: Vec<Batch>,
    /// How late the renewals are.
    pub(crate) lags: Vec<std::time::Duration>,
    /// Leases that were held for too long and are to be ended on the server.
    pub(crate) overdue: Vec<Arc<HeldLease>>,
    /// Claims whose future was not polled in time.
    pub(crate) expired: Vec<Arc<dyn Claim>>,
}

impl Shared {
    /// How far ahead of its time a renewal may travel with one that is due.
    const COMPANY: std::time::Duration = std::time::Duration::from_millis(300);

    fn insert(&self, state: &mut State, at: Instant, watched: Watched) -> Watch {
        let key = state.queue.insert(at, watched);
        if at < state.sleeps_until {
            self.wake.notify_one();
        }
        Watch(key)
    }

    /// Takes what is due; `None` when the watchdog is to stop.
    pub(crate) fn take_due(&self, now: Instant) -> Option<Work> {
        let mut work = Work::default();
        let mut state = self.state();
        if state.stopped {
            return None;
        }
        if state.queue.earliest().is_some_and(|at| at <= now) {
            let due: Vec<_> = state.queue.due(now + Self::COMPANY).collect();
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
                Watched::Claim(claim) => claim.expire(),
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
            Some(Watched::Claim(_)) if at <= now => {
                if let Some(Watched::Claim(claim)) = self.queue.remove(key) {
                    work.expired.push(claim);
                }
            }
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
