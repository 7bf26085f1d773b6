use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use leasehold_core::{AcquisitionId, Instant, LockName, RuntimeId, Ttl};

use crate::{engine::Timing, seam::Rules};

/// What a rule may know besides its state and the event: the time, and what the runtime agreed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) name: &'a LockName,
    pub(crate) now: Instant,
    /// A fraction in `[0, 1)`.
    pub(crate) jitter: f64,
    pub(crate) numbers: &'a Numbers,
    pub(crate) timing: &'a Timing,
    pub(crate) rules: &'a Rules,
}

impl Moment<'_> {
    /// The shortest pause between two heartbeats.
    pub(crate) const SHORTEST: Duration = Duration::from_millis(25);

    /// How long a grant of this ttl waits to be taken.
    pub(super) fn claim_window(&self, ttl: Ttl) -> Duration {
        self.timing.claim_window(ttl)
    }

    /// When the heartbeat after one that was sent at `sent_at` is due: within a quarter of the
    /// claim window, so that three may be lost.
    pub(super) fn next_heartbeat(&self, sent_at: Instant, ttl: Ttl) -> Instant {
        let pause = (self.claim_window(ttl) / 4).mul_f64(1.0 - self.jitter / 4.0);
        sent_at + pause.max(Self::SHORTEST)
    }

    /// When to try again after so many failures in a row.
    pub(super) fn retry(&self, failures: u32, ttl: Ttl) -> Instant {
        let longest = (self.claim_window(ttl) / 4).max(Self::SHORTEST);
        let pause = Self::SHORTEST.saturating_mul(1 << failures.min(10)).min(longest);
        self.now + pause.mul_f64(1.0 - self.jitter / 2.0)
    }
}

/// Where the numbers of a runtime come from: none is given twice.
#[derive(Debug)]
pub(crate) struct Numbers {
    runtime: RuntimeId,
    acquisitions: AtomicU64,
    changes: AtomicU64,
}

impl Numbers {
    pub(crate) fn new(runtime: RuntimeId) -> Self {
        Self { runtime, acquisitions: AtomicU64::new(0), changes: AtomicU64::new(0) }
    }

    /// The runtime whose numbers these are.
    pub(crate) fn runtime(&self) -> RuntimeId {
        self.runtime
    }

    /// An id that was never used, for an acquisition or a lease.
    pub(crate) fn id(&self) -> AcquisitionId {
        self.known(self.acquisitions.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The id of a number that was given before.
    pub(crate) fn known(&self, number: u64) -> AcquisitionId {
        AcquisitionId::new(self.runtime, number)
    }

    /// The number of a heartbeat, or of a change of holds: greater than those before.
    pub(crate) fn change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1
    }
}
