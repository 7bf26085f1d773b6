use std::sync::Arc;

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, Ttl,
    lease::{HoldUpdate, LeaseState},
    metric::{ClassMetrics, ReleaseOutcome, ReleaseVia},
};
use leasehold_watchdog::HeldLease;
use tokio::sync::Notify;

use crate::queue::{TurnId, TurnRelease};

use super::repeat_rules::{Belief, DeliveryEnd};

/// A command that is repeated until the server has answered.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(super) name: LockName,
    pub(super) id: AcquisitionId,
    pub(super) ttl: Ttl,
    pub(super) kind: DeliveryKind,
    /// When the acquisition or lease expires on the server by itself.
    pub(super) expires: Instant,
    /// The turn that it ends, if the state of its name waits for the answer.
    pub(super) turn: Option<TurnId>,
    /// What the holder knew, if a holder sends it: its first copy queues no place.
    pub(super) belief: Option<Belief>,
    /// Until when the lock is to stay closed after its release.
    pub(super) closed_until: Option<Instant>,
    /// How a release is counted; `None` if it is not counted, or was counted before.
    pub(super) via: Option<ReleaseVia>,
    pub(super) metrics: Arc<ClassMetrics>,
    /// Notified when the next copy is to be sent at once.
    pub(super) hurry: Arc<Notify>,
}

#[derive(Debug, Clone)]
pub(super) enum DeliveryKind {
    /// End a lease.
    Release(Fence),
    /// Take an acquisition back, whatever it has by now.
    Withdraw,
    /// Count the holds of a lease that goes on.
    Hold { lease: Arc<HeldLease>, update: HoldUpdate },
}

impl Delivery {
    /// A release for whose answer the state of the name does not wait.
    pub(super) fn release(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        release: TurnRelease,
    ) -> Self {
        let TurnRelease { turn: TurnId { id, first }, ttl, closed_until, via, hurry } = release;
        let (name, metrics, expires) = (name.clone(), Arc::clone(metrics), now + ttl.get());
        let (kind, turn, belief) = (DeliveryKind::Release(first), None, None);
        Self { name, id, ttl, kind, expires, turn, belief, closed_until, via, metrics, hurry }
    }

    /// The count of holds of a lease. It extends the lease, so there is none after a loss.
    pub(super) fn hold(now: Instant, lease: &Arc<HeldLease>, update: HoldUpdate) -> Option<Self> {
        let LeaseState::Held { until } = lease.state() else { return None };
        let kind = DeliveryKind::Hold { lease: Arc::clone(lease), update };
        let (id, ttl) = (lease.turn().id(), lease.ttl());
        let hold = Self::of(now, lease.name(), lease.metrics(), id, ttl, kind);
        Some(Self { expires: until, ..hold })
    }

    pub(super) fn of(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
        kind: DeliveryKind,
    ) -> Self {
        let (name, metrics, expires) = (name.clone(), Arc::clone(metrics), now + ttl.get());
        let (turn, belief, closed_until, via) = (None, None, None, None);
        let hurry = Arc::default();
        Self { name, id, ttl, kind, expires, turn, belief, closed_until, via, metrics, hurry }
    }

    /// Whether the lock stays closed until the command is executed.
    pub(super) fn is_release(&self) -> bool {
        matches!(self.kind, DeliveryKind::Release(_))
    }

    pub(super) fn is_withdrawal(&self) -> bool {
        matches!(self.kind, DeliveryKind::Withdraw)
    }

    /// Whether a task waits for the answer, or a lock is to stay closed and its ttl may end before.
    pub(super) fn is_awaited(&self, is_first: bool) -> bool {
        match self.kind {
            DeliveryKind::Release(_) if self.closed_until.is_some() => true,
            DeliveryKind::Release(_) if self.belief.is_none() => {
                self.turn.is_some() && self.via != Some(ReleaseVia::Drop)
            }
            DeliveryKind::Release(_) | DeliveryKind::Hold { .. } => is_first,
            DeliveryKind::Withdraw => false,
        }
    }

    pub(super) fn count(&self, end: DeliveryEnd) {
        let Some(via) = self.via else { return };
        self.metrics.release(end.metric(), via);
        if end.metric() == ReleaseOutcome::Unconfirmed {
            // The failures of its commands are logged, and the metrics count it.
            tracing::debug!(
                lock = %self.name, lease = %self.id,
                "a release was not confirmed by the server; the lease ends with its ttl"
            );
        }
        if let DeliveryEnd::Lost(reason) = end {
            self.metrics.lost(reason);
        }
    }
}
