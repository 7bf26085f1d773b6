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
    /// A command that the runtime drives.
    pub(crate) send: Option<Send>,
    /// Acquisitions to be withdrawn, whatever came of them.
    pub(crate) withdraw: Vec<(AcquisitionId, Ttl)>,
    /// A turn that need not be watched any more.
    pub(crate) forget: Option<Watch>,
    /// Why whoever holds a lease of that turn has lost it.
    pub(crate) lost: Option<LossReason>,
    /// How many leases the turn had that ended.
    pub(crate) ended: Option<u32>,
    /// In the series of which class it counts; `None` for the class that the cohort began with.
    pub(crate) metrics: Option<Arc<ClassMetrics>>,
}

impl Effects {
    /// What follows from one more event; a rule sends one command at most.
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
        self.ended = self.ended.or(more.ended);
        self.metrics = self.metrics.take().or(more.metrics);
    }
}

/// A command that the runtime drives, whoever waits for what comes of it.
#[derive(Debug)]
pub(crate) enum Send {
    /// End a turn.
    End(End),
    /// Confirm a grant before anybody believes in it.
    Confirm(Grant),
    /// Ask for a lock that was just given back.
    Ask(Beat),
}

/// The end of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) id: AcquisitionId,
    pub(crate) first: FenceToken,
    pub(crate) ttl: Ttl,
    /// Until when the server may have the lease.
    pub(crate) until: Instant,
    /// With what the runtime queues anew in the same step.
    pub(crate) next: Option<NextPlace>,
    /// Until when the lock stays closed nevertheless; nobody queues anew in the same step then.
    pub(crate) closed_until: Option<Instant>,
    /// As which release it counts; `None` where the holder's own release was counted before.
    pub(crate) via: Option<ReleaseVia>,
}

/// The acquisition with which a runtime queues anew.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextPlace {
    pub(crate) id: AcquisitionId,
    pub(crate) ttl: Ttl,
    pub(crate) heartbeat: Heartbeat,
    /// When the first copy of the command was sent.
    pub(crate) sent_at: Instant,
}
