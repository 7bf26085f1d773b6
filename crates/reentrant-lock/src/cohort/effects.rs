use std::{sync::Arc, task::Waker};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, Ttl,
    lease::{Grant, LossReason},
    metric::{ClassMetrics, ReleaseVia},
    store::Heartbeat,
};
use leasehold_watchdog::Watch;

use super::place::Beat;

/// What is to be done once a rule has been applied, outside of every lock.
#[derive(Debug, Default)]
#[must_use = "a rule only says what is to be done"]
pub(crate) struct Effects {
    /// The task to wake.
    pub(crate) wake: Option<Waker>,
    /// Further tasks to wake.
    pub(crate) wake_all: Vec<Waker>,
    /// A command that the runtime sends.
    pub(crate) send: Option<Outgoing>,
    /// Acquisitions to withdraw, whatever they have by now.
    pub(crate) withdraw: Vec<(AcquisitionId, Ttl)>,
    /// A turn that the watchdog need not watch any more.
    pub(crate) forget: Option<Watch>,
    /// Why the holder of a lease of that turn has lost it.
    pub(crate) lost: Option<LossReason>,
    /// How many leases the turn had that is over.
    pub(crate) leases: Option<u32>,
    /// The class in whose series it counts; `None` for that of the task that came first.
    pub(crate) metrics: Option<Arc<ClassMetrics>>,
}

impl Effects {
    /// Adds what follows from one more event; a rule sends one command at most.
    pub(super) fn add(&mut self, more: Self) {
        match self.wake {
            None => self.wake = more.wake,
            Some(_) => self.wake_all.extend(more.wake),
        }
        self.wake_all.extend(more.wake_all);
        self.send = self.send.take().or(more.send);
        self.withdraw.extend(more.withdraw);
        self.forget = self.forget.take().or(more.forget);
        self.lost = self.lost.take().or(more.lost);
        self.leases = self.leases.or(more.leases);
        self.metrics = self.metrics.take().or(more.metrics);
    }
}

/// A command that the runtime sends.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// End a turn on the server.
    Release(TurnRelease),
    /// Confirm a grant by a renewal, before any task believes in it.
    Confirm(Grant),
    /// Ask for a lock.
    Heartbeat(Beat),
}

/// A turn, as commands name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnId {
    pub(crate) id: AcquisitionId,
    /// The first token of its grant.
    pub(crate) first: FenceToken,
}

impl TurnId {
    /// The turn that a grant gives.
    pub(crate) fn of(grant: &Grant) -> Self {
        Self { id: grant.id(), first: grant.first() }
    }
}

/// The end of a turn on the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnRelease {
    pub(crate) turn: TurnId,
    pub(crate) ttl: Ttl,
    /// Until when the lock stays closed nevertheless.
    pub(crate) closed_until: Option<Instant>,
    /// As which release it counts; `None` where the holder's own release was counted before.
    pub(crate) via: Option<ReleaseVia>,
}

/// The acquisition with which a runtime queues anew in the step that ends its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextPlace {
    pub(crate) id: AcquisitionId,
    pub(crate) ttl: Ttl,
    pub(crate) heartbeat: Heartbeat,
    /// When the first copy of the release was sent.
    pub(crate) sent_at: Instant,
}
