use std::sync::Arc;

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, Ttl,
    lease::{HoldUpdate, LeaseState},
    metric::{ClassMetrics, ReleaseOutcome, ReleaseVia},
};
use leasehold_watchdog::HeldLease;

use crate::{
    durations::BACKLOG,
    queue::{TurnId, TurnRelease},
};

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
    /// When a withdrawal is given up: it goes on after `expires`.
    pub(super) gives_up_at: Instant,
    /// How a release is counted; `None` if it is not counted, or was counted before.
    pub(super) via: Option<ReleaseVia>,
    pub(super) metrics: Arc<ClassMetrics>,
}

#[derive(Debug, Clone)]
pub(super) enum DeliveryKind {
    /// End a lease.
    Release {
        fence: Fence,
        closed_until: Option<Instant>,
        /// Who sends it; `None` where the state of the name does not wait for the answer.
        sender: Option<Sender>,
    },
    /// Take an acquisition back, whatever it has by now.
    Withdraw,
    /// Count the holds of a lease that goes on.
    Hold { lease: Arc<HeldLease>, update: HoldUpdate },
}

/// Who sends the release that ends a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sender {
    /// The task that gave the last lease back; the release queues no place.
    Holder(Belief),
    /// The runtime, which queues with the release for the tasks that wait by then.
    Runtime,
}

impl Delivery {
    pub(super) fn release(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        release: &TurnRelease,
        sender: Option<Sender>,
    ) -> Self {
        let TurnRelease { turn: TurnId { id, first: fence }, ttl, closed_until, via } = *release;
        let kind = DeliveryKind::Release { fence, closed_until, sender };
        Self { via, ..Self::of(now, name, metrics, id, ttl, kind) }
    }

    pub(super) fn withdrawal(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
    ) -> Self {
        let withdrawal = Self::of(now, name, metrics, id, ttl, DeliveryKind::Withdraw);
        Self { via: Some(ReleaseVia::Withdraw), ..withdrawal }
    }

    /// The count of holds of a lease. It extends the lease, so there is none after a loss.
    pub(super) fn hold(now: Instant, lease: &Arc<HeldLease>, update: HoldUpdate) -> Option<Self> {
        let LeaseState::Held { until } = lease.state() else { return None };
        let kind = DeliveryKind::Hold { lease: Arc::clone(lease), update };
        let (id, ttl) = (lease.turn().id(), lease.ttl());
        let hold = Self::of(now, lease.name(), lease.metrics(), id, ttl, kind);
        Some(Self { expires: until, ..hold })
    }

    fn of(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
        kind: DeliveryKind,
    ) -> Self {
        let (name, metrics, expires) = (name.clone(), Arc::clone(metrics), now + ttl.get());
        let gives_up_at = expires + BACKLOG;
        Self { name, id, ttl, kind, expires, gives_up_at, via: None, metrics }
    }

    /// The turn that the release ends, if the state of its name waits for that.
    pub(super) fn turn(&self) -> Option<TurnId> {
        match &self.kind {
            DeliveryKind::Release { fence, sender: Some(_), .. } => {
                Some(TurnId { id: self.id, first: *fence })
            }
            _ => None,
        }
    }

    /// The lock that stays closed until the command is executed.
    pub(super) fn closes(&self) -> Option<LockName> {
        matches!(self.kind, DeliveryKind::Release { .. }).then(|| self.name.clone())
    }

    pub(super) fn belief(&self) -> Option<Belief> {
        match self.kind {
            DeliveryKind::Release { sender: Some(Sender::Holder(belief)), .. } => Some(belief),
            _ => None,
        }
    }

    /// Until when the lock is to stay closed after its release.
    pub(super) fn closed_until(&self) -> Option<Instant> {
        match self.kind {
            DeliveryKind::Release { closed_until, .. } => closed_until,
            DeliveryKind::Withdraw | DeliveryKind::Hold { .. } => None,
        }
    }

    pub(super) fn is_withdrawal(&self) -> bool {
        matches!(self.kind, DeliveryKind::Withdraw)
    }

    /// Whether a task waits for the answer, or a lock is to stay closed and its ttl may end before.
    pub(super) fn is_awaited(&self, is_first: bool) -> bool {
        match &self.kind {
            DeliveryKind::Release { closed_until: Some(_), .. } => true,
            DeliveryKind::Release { sender: Some(Sender::Runtime), .. } => {
                self.via != Some(ReleaseVia::Drop)
            }
            DeliveryKind::Release { sender: Some(Sender::Holder(_)), .. }
            | DeliveryKind::Hold { .. } => is_first,
            DeliveryKind::Release { sender: None, .. } | DeliveryKind::Withdraw => false,
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
