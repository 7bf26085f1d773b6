use std::sync::Arc;

use leasehold_core::{LockName, Sleep};
use leasehold_watchdog::HeldLease;

use crate::{
    durations::{LOG_PAUSE, SUSPICION},
    engine::Engine,
    error::{AcquireError, SelfWait},
    graph::OwnerWait,
    owner::Owner,
    wait::LeaseRequest,
};

/// Whether a call waits for its own process, as it looked when the call began to wait.
pub(crate) struct Suspicion {
    /// It waits for a lease of its own task or of a scope it is not in, which may never end while it
    /// waits.
    suspect: Option<Suspect>,
    /// The call has an owner, which may be part of a cycle.
    waiting: Option<OwnerWait>,
}

/// A lease of this process that a call may wait for in vain.
struct Suspect {
    lease: Arc<HeldLease>,
    how: SelfWait,
    /// When to warn; `None` once that is done.
    alarm: Option<Sleep>,
}

impl Suspicion {
    /// The call is about to wait. Only a suspicious call sets a timer, and most are not.
    pub(crate) fn of(
        engine: &Engine,
        name: &LockName,
        request: &LeaseRequest,
        owner: Option<&Owner>,
    ) -> Self {
        let suspect = engine.holder(name).and_then(|(lease, holder)| {
            let how = request.caller?.waits_for_itself(holder)?;
            let clock = &engine.clock;
            let alarm = Some(clock.sleep_until(clock.now() + SUSPICION));
            Some(Suspect { lease, how, alarm })
        });
        Self { suspect, waiting: owner.map(|owner| OwnerWait::new(owner, name)) }
    }

    /// Ends when it is time to warn; `None` if there is nothing to warn of, or it was done.
    pub(crate) fn alarm(&mut self) -> Option<&mut Sleep> {
        self.suspect.as_mut()?.alarm.as_mut()
    }

    pub(crate) fn warn(&mut self, engine: &Engine) {
        if let Some(suspect) = &mut self.suspect {
            suspect.alarm = None;
            suspect.warn(engine);
        }
    }

    /// A timeout says so, if the call has waited for that one lease all the time, or is part of a
    /// cycle.
    pub(crate) fn explain(&self, engine: &Engine, error: &mut AcquireError) {
        let AcquireError::Timeout(timeout) = error else { return };
        let suspect = self.suspect.as_ref().filter(|suspect| suspect.lease.is_held());
        timeout.self_wait = suspect.map(|suspect| suspect.how);
        timeout.cycle = self.waiting.as_ref().and_then(|waiting| {
            engine.own_holds.cycle_of(waiting, engine.runtime_id(), &engine.label)
        });
    }
}

impl Suspect {
    fn warn(&self, engine: &Engine) {
        let Self { lease, how, .. } = self;
        if !lease.is_held() {
            return;
        }
        let now = engine.clock.now();
        let left_out = engine.reports.lock().suspects.take(lease.name(), now, LOG_PAUSE);
        let Some(left_out) = left_out else { return };
        let held_for = now.saturating_since(lease.since());
        tracing::warn!(
            lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), ?held_for, left_out,
            "a call may be waiting for its own process: {how}"
        );
    }
}
