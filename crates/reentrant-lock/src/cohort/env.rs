use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::{AcquisitionId, Instant, LockName, RuntimeId, Ttl, backoff};

use crate::{seam::Rules, timing::Timing};

/// What a rule may know besides its state and the event: the time, and the settings of the runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Env<'a> {
    pub(crate) name: &'a LockName,
    pub(crate) now: Instant,
    /// A fraction in `[0, 1)`.
    pub(crate) jitter: f64,
    pub(crate) numbers: &'a Numbers,
    pub(crate) timing: &'a Timing,
    pub(crate) rules: &'a Rules,
}

impl Env<'_> {
    /// How long a grant of this ttl waits to be taken.
    pub(super) fn claim_window(&self, ttl: Ttl) -> Duration {
        self.timing.claim_window(ttl)
    }

    /// When the heartbeat after one that was sent at `sent_at` is due: within a quarter of the
    /// claim window, so that three may be lost.
    pub(super) fn next_heartbeat(&self, sent_at: Instant, ttl: Ttl) -> Instant {
        let pause = (self.claim_window(ttl) / 4).mul_f64(1.0 - self.jitter / 4.0);
        sent_at + pause.max(Timing::SHORTEST_PAUSE)
    }

    /// When to try again after so many failures in a row.
    pub(super) fn retry(&self, failures: u32, ttl: Ttl) -> Instant {
        let longest = self.timing.heartbeat_pause(ttl);
        self.now + backoff(Timing::SHORTEST_PAUSE, longest, failures, 1.0 - self.jitter)
    }
}

/// Where the numbers of a runtime come from: none is given twice.
#[derive(Debug)]
pub(crate) struct Numbers {
    runtime_id: RuntimeId,
    acquisitions: AtomicU64,
    changes: AtomicU64,
}

impl Numbers {
    pub(crate) fn new(runtime_id: RuntimeId) -> Self {
        Self { runtime_id, acquisitions: AtomicU64::new(0), changes: AtomicU64::new(0) }
    }

    /// The runtime whose numbers these are.
    pub(crate) fn runtime_id(&self) -> RuntimeId {
        self.runtime_id
    }

    /// An id that was never used, for an acquisition or a lease.
    pub(crate) fn id(&self) -> AcquisitionId {
        self.known(self.acquisitions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The id of a number that was given before.
    pub(crate) fn known(&self, number: u64) -> AcquisitionId {
        AcquisitionId::new(self.runtime_id, number)
    }

    /// The number of a heartbeat, or of a change of holds: greater than those before.
    pub(crate) fn change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1
    }
}
