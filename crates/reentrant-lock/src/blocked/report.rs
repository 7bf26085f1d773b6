use std::time::Duration;

use leasehold_core::{Class, Instant, LockName};
use leasehold_watchdog::HeldLease;

use crate::error::{HolderInfo, QueuePosition};

/// The target of the event; part of the documented interface.
const TARGET: &str = "leasehold::blocked";

/// A call that has waited for long.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) lock: LockName,
    pub(crate) class: Class,
    pub(crate) waited: Duration,
    pub(crate) position: QueuePosition,
    /// How many waits for other locks were not reported since the last report.
    pub(crate) left_out: u64,
}

impl Report {
    /// Tells it of a lock that a task of this runtime holds.
    pub(crate) fn tell_lease(self, lease: &HeldLease, label: String, now: Instant) {
        self.tell(Some(HolderInfo::of_lease(lease, label, now)));
    }

    /// Tells it; without a holder where the lock is free at the moment.
    pub(crate) fn tell(self, holder: Option<HolderInfo>) {
        let Self { lock, class, waited, position, left_out } = self;
        let class = class.as_str();
        let Some(holder) = holder else {
            tracing::warn!(
                target: TARGET, %lock, class, ?waited, %position, left_out,
                "a call has waited for long, and nobody holds the lock at the moment"
            );
            return;
        };
        let HolderInfo { label, lease, fence, held_for, remaining, kept, this_runtime } = holder;
        if kept {
            tracing::warn!(
                target: TARGET, %lock, class, ?waited, %position, left_out,
                holder = label, this_runtime, %lease, %fence, ?held_for, kept, opens_in = ?remaining,
                "a call has waited for long, and nobody holds the lock: it is kept closed, and opens \
                 by itself"
            );
            return;
        }
        tracing::warn!(
            target: TARGET, %lock, class, ?waited, %position, left_out,
            holder = label, this_runtime, %lease, %fence, ?held_for,
            "a call has waited for long; find out why the holder keeps the lock"
        );
    }
}
