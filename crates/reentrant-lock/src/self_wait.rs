use std::{sync::Arc, task::Context, time::Duration};

use leasehold_core::{LockName, Sleep};
use leasehold_watchdog::HeldLease;

use crate::{
    engine::{Engine, Request},
    error::{AcquireError, SelfWait},
};

/// Whether a call waits for its own process, as it looked when it began to wait: for a lease of its
/// own task or of a scope it is not in, which may never end while it waits.
pub(crate) struct Suspicion(Option<Box<Suspect>>);

/// A lease of this process that a call may wait for in vain.
struct Suspect {
    lease: Arc<HeldLease>,
    how: SelfWait,
    /// When to warn; `None` once that is done.
    alarm: Option<Sleep>,
}

impl Suspicion {
    const PATIENCE: Duration = Duration::from_secs(1);

    /// The call is about to wait. Only a suspicious one sets a timer: most calls that wait are
    /// none.
    pub(crate) fn of(engine: &Engine, name: &LockName, request: &Request) -> Self {
        Self(engine.holder(name).and_then(|(lease, holder)| {
            let how = request.caller?.waits_for_itself(holder)?;
            let clock = &engine.clock;
            let alarm = Some(clock.sleep_until(clock.now() + Self::PATIENCE));
            Some(Box::new(Suspect { lease, how, alarm }))
        }))
    }

    pub(crate) fn look(&mut self, engine: &Engine, cx: &mut Context<'_>) {
        let Some(suspect) = &mut self.0 else { return };
        if suspect.alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready()) {
            suspect.alarm = None;
            suspect.warn(engine);
        }
    }

    /// A timeout says so, if the call has waited for that one lease all the time.
    pub(crate) fn explain(&self, error: &mut AcquireError) {
        if let (Some(suspect), AcquireError::Timeout(timeout)) = (&self.0, error)
            && suspect.lease.is_held()
        {
            timeout.self_wait = Some(suspect.how);
        }
    }
}

impl Suspect {
    /// A lock is warned of once in this time.
    const PAUSE: Duration = Duration::from_secs(60);

    fn warn(&self, engine: &Engine) {
        let Self { lease, how, .. } = self;
        if !lease.is_held() {
            return;
        }
        let now = engine.clock.now();
        let left_out = engine.suspects.lock().take(lease.name(), now, Self::PAUSE);
        let Some(left_out) = left_out else { return };
        let held_for = now.saturating_since(lease.since());
        tracing::warn!(
            lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), ?held_for, left_out,
            "a call may be waiting for its own process: {how}"
        );
    }
}
