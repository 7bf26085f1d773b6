use std::time::Duration;

use leasehold_core::{AcquisitionId, Class, FenceToken, Instant, LockName, store::Inspection};
use leasehold_watchdog::HeldLease;

use crate::error::QueuePosition;

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

/// Who holds the lock that a call waits for.
#[derive(Debug)]
pub(crate) struct Holder {
    label: String,
    lease: AcquisitionId,
    fence: FenceToken,
    held_for: Duration,
    this_runtime: bool,
}

impl Holder {
    /// A task of this runtime.
    pub(crate) fn here(lease: &HeldLease, label: String, now: Instant) -> Self {
        Self {
            label,
            lease: lease.id(),
            fence: lease.fence(),
            held_for: now.saturating_since(lease.since()),
            this_runtime: true,
        }
    }

    /// Whom an inspection shows.
    pub(crate) fn seen(inspection: Inspection) -> Option<Self> {
        match inspection {
            Inspection::Held(record) => Some(Self {
                label: record.label,
                lease: record.id,
                fence: record.fence,
                held_for: record.held_for,
                this_runtime: false,
            }),
            Inspection::Free { .. } => None,
        }
    }
}

impl Report {
    /// Tells it; without a holder where the lock is free at the moment.
    pub(crate) fn tell(self, holder: Option<Holder>) {
        let Self { lock, class, waited, position, left_out } = self;
        let class = class.as_str();
        let Some(Holder { label, lease, fence, held_for, this_runtime }) = holder else {
            tracing::warn!(
                target: TARGET, %lock, class, ?waited, %position, left_out,
                "a call has waited for long, and nobody holds the lock at the moment"
            );
            return;
        };
        tracing::warn!(
            target: TARGET, %lock, class, ?waited, %position, left_out,
            holder = label, this_runtime, %lease, %fence, ?held_for,
            "a call has waited for long; find out why the holder keeps the lock"
        );
    }
}
