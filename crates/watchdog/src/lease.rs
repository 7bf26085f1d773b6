use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Clock, FenceToken, Instant, LockName, Ttl,
    lease::{Grant, LeaseRules, LeaseState, LossReason},
    metric::{ClassMetrics, HoldEnd},
    store::Renewal,
};
use tokio_util::sync::CancellationToken;

use crate::signal::{EndSignal, Lost};

/// One lease in its holder's eyes: what it may believe, and the signal of the end.
///
/// Every method looks at the clock first, so a process that was paused sees a lost lease as lost
/// before it does anything else. Lost never turns back into held.
pub struct HeldLease {
    grant: Grant,
    since: Instant,
    clock: Arc<dyn Clock>,
    metrics: Arc<ClassMetrics>,
    rules: Mutex<LeaseRules>,
    ended: EndSignal,
}

impl HeldLease {
    /// Takes over a grant at `now`; with a `max_hold` the lease ends that long after.
    pub fn new(
        grant: Grant,
        now: Instant,
        max_hold: Option<Duration>,
        clock: Arc<dyn Clock>,
        metrics: Arc<ClassMetrics>,
    ) -> Arc<Self> {
        let rules = LeaseRules::new(grant.believed_until(), max_hold.map(|hold| now + hold));
        metrics.held(1);
        Arc::new(Self {
            grant,
            since: now,
            clock,
            metrics,
            rules: Mutex::new(rules),
            ended: EndSignal::default(),
        })
    }

    /// The lock that is held.
    pub fn name(&self) -> &LockName {
        self.grant.name()
    }

    /// The acquisition that holds it.
    pub fn id(&self) -> AcquisitionId {
        self.grant.id()
    }

    /// The fence token of the lease.
    pub fn fence(&self) -> FenceToken {
        self.grant.fence()
    }

    /// The ttl to which renewals extend it.
    pub fn ttl(&self) -> Ttl {
        self.grant.ttl()
    }

    /// When the holder took the lease over.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// The clock that the lease is measured on.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The series of the lock's class.
    pub fn metrics(&self) -> &Arc<ClassMetrics> {
        &self.metrics
    }

    /// What the holder may believe now.
    pub fn state(&self) -> LeaseState {
        self.change(LeaseRules::observe).1
    }

    /// For how long the lease may be believed without a renewal; zero when it is over.
    pub fn remaining(&self) -> Duration {
        match self.state() {
            LeaseState::Held { until } => until.saturating_since(self.clock.now()),
            LeaseState::Lost(_) | LeaseState::Released => Duration::ZERO,
        }
    }

    /// A renewal or hold that was sent at `sent_at` was answered with `remaining`.
    pub fn extended(&self, sent_at: Instant, remaining: Duration) -> LeaseState {
        self.change(|rules, now| rules.extended(now, sent_at, remaining)).1
    }

    /// The lease is lost for `reason`, unless it had ended before.
    pub fn lose(&self, reason: LossReason) -> LeaseState {
        self.change(|rules, now| rules.lose(now, reason)).1
    }

    /// The holder gives the lease back; the answer is the state that it had until then.
    pub fn release(&self, end: HoldEnd) -> LeaseState {
        let mut released_at = self.since;
        let (before, answer) = self.change(|rules, now| {
            released_at = now;
            rules.release(now)
        });
        if before.is_held() && answer.is_held() {
            let held_for = released_at.saturating_since(self.since);
            self.metrics.held(-1);
            self.metrics.hold(end, held_for);
            self.ended.raise();
        }
        answer
    }

    /// A future that resolves when the lease is over.
    pub fn lost(self: &Arc<Self>) -> Lost {
        Lost::of(Arc::clone(self))
    }

    /// A token that is cancelled when the lease is over.
    pub fn cancellation(&self) -> CancellationToken {
        let token = self.ended.token().clone();
        // The lease may have ended before there was a token to cancel.
        if !self.state().is_held() {
            token.cancel();
        }
        token
    }

    /// The renewal that this lease asks for.
    pub(crate) fn renewal(&self) -> Renewal {
        Renewal { name: self.name().clone(), id: self.id(), fence: self.fence(), ttl: self.ttl() }
    }

    /// When the lease ends if nothing happens; long past when it is over.
    pub(crate) fn deadline(&self) -> Instant {
        self.rules().deadline().unwrap_or_default()
    }

    /// Applies a rule; answers with the state before it and what the rule answered.
    fn change(
        &self,
        rule: impl FnOnce(&mut LeaseRules, Instant) -> LeaseState,
    ) -> (LeaseState, LeaseState) {
        let now = self.clock.now();
        let (before, answer) = {
            let mut rules = self.rules();
            (rules.present(), rule(&mut rules, now))
        };
        if let (LeaseState::Held { .. }, LeaseState::Lost(reason)) = (before, answer) {
            self.tell_loss(now, reason);
        }
        (before, answer)
    }

    fn tell_loss(&self, now: Instant, reason: LossReason) {
        let held_for = now.saturating_since(self.since);
        self.metrics.held(-1);
        self.metrics.lost(reason);
        self.metrics.hold(HoldEnd::Lost, held_for);
        tracing::warn!(
            lock = %self.name(), lease = %self.id(), fence = %self.fence(), ?held_for,
            "lease lost: {reason}"
        );
        self.ended.raise();
    }

    fn rules(&self) -> MutexGuard<'_, LeaseRules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HeldLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLease")
            .field("name", self.name())
            .field("id", &self.id())
            .field("fence", &self.fence())
            .field("state", &self.rules().present())
            .finish_non_exhaustive()
    }
}
