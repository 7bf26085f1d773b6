use std::sync::Arc;

use leasehold_core::Instant;
use leasehold_watchdog::HeldLease;

use crate::{
    durations::{LOG_PAUSE, SUSPICION},
    engine::Engine,
    error::{AcquireError, SelfWait},
    graph::{OwnerWait, certain_cycle_of},
};

use super::line::AcquireCall;

/// Whether a call waits for its own process, as it looked when the call began to wait.
pub(super) struct Suspicion {
    /// It waits for this lease of its own task or of a scope it is not in, which may never end while
    /// it waits.
    suspect: Option<(Arc<HeldLease>, SelfWait)>,
    /// When to warn of it; `None` once that is done.
    pub(super) warn_at: Option<Instant>,
    /// The call has an owner, which may be part of a cycle.
    waiting: Option<OwnerWait>,
}

impl Suspicion {
    /// The call is about to wait.
    pub(super) fn of(call: &AcquireCall) -> Self {
        let AcquireCall { engine, name, by, caller, .. } = call;
        let suspect = engine
            .holder(name)
            .and_then(|(lease, holder)| Some((lease, caller.waits_for_itself(holder)?)));
        let warn_at = suspect.is_some().then(|| engine.clock.now() + SUSPICION);
        let waiting = by.as_ref().map(|owner| OwnerWait::new(owner, name));
        Self { suspect, warn_at, waiting }
    }

    pub(super) fn warn_if_due(&mut self, engine: &Engine, now: Instant) {
        if self.warn_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let Some((lease, how)) = self.held_suspect() else { return };
        let left_out = engine.reports.lock().suspects.take(lease.name(), now, LOG_PAUSE);
        let Some(left_out) = left_out else { return };
        let held_for = now.saturating_since(lease.since());
        tracing::warn!(
            lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), ?held_for, left_out,
            "a call may be waiting for its own process: {how}"
        );
    }

    /// A timeout says so, if the call has waited for that one lease all the time, or is part of a
    /// cycle.
    pub(super) fn explain(&self, engine: &Engine, error: &mut AcquireError) {
        let AcquireError::Timeout(timeout) = error else { return };
        timeout.self_wait = self.held_suspect().map(|(_, how)| *how);
        timeout.cycle = self.waiting.as_ref().and_then(|waiting| certain_cycle_of(engine, waiting));
    }

    fn held_suspect(&self) -> Option<&(Arc<HeldLease>, SelfWait)> {
        self.suspect.as_ref().filter(|(lease, _)| lease.is_held())
    }
}
