use std::{
    fmt,
    sync::{Arc, PoisonError},
    task::Context,
    time::Duration,
};

use leasehold_core::{LockName, Sleep};
use leasehold_watchdog::HeldLease;

use crate::{
    engine::{Engine, Request},
    error::{AcquireError, SelfWait},
};

/// Whether a call waits for its own process, as it looked when it began to wait.
#[derive(Debug, Default)]
pub(crate) enum Suspicion {
    /// It has not begun to wait.
    #[default]
    NotAsked,
    /// Nothing speaks for it.
    None,
    /// The lease that it waits for may never end while it waits.
    Found(Box<Suspect>),
}

/// A lease of this process that a call may wait for in vain.
pub(crate) struct Suspect {
    lease: Arc<HeldLease>,
    how: SelfWait,
    /// When to warn; `None` once that is done.
    alarm: Option<Sleep>,
}

impl Suspicion {
    /// How long a call waits for one lease before it is suspicious.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// The call is about to wait on. Only a suspicious one sets a timer: most calls that wait are
    /// none.
    pub(crate) fn look(
        &mut self,
        engine: &Engine,
        name: &LockName,
        request: &Request,
        cx: &mut Context<'_>,
    ) {
        if let Self::NotAsked = self {
            *self = Self::of(engine, name, request);
        }
        let Self::Found(suspect) = self else { return };
        if suspect.alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready()) {
            suspect.alarm = None;
            suspect.warn(engine);
        }
    }

    fn of(engine: &Engine, name: &LockName, request: &Request) -> Self {
        let found = engine.holder(name).and_then(|(lease, holder)| {
            let how = request.caller?.waits_for_itself(holder)?;
            let clock = &engine.clock;
            let alarm = Some(clock.sleep_until(clock.now() + Self::PATIENCE));
            Some(Self::Found(Box::new(Suspect { lease, how, alarm })))
        });
        found.unwrap_or(Self::None)
    }

    /// A timeout says so, if the call has waited for that one lease all the time.
    pub(crate) fn explain(&self, error: &mut AcquireError) {
        if let (Self::Found(suspect), AcquireError::Timeout(timeout)) = (self, error)
            && suspect.lease.state().is_held()
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
        if !lease.state().is_held() {
            return;
        }
        let now = engine.clock.now();
        let mut suspects = engine.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left_out) = suspects.take(lease.name(), now, Self::PAUSE) else { return };
        drop(suspects);
        let held_for = now.saturating_since(lease.since());
        tracing::warn!(
            lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), ?held_for, left_out,
            "a call may be waiting for its own process: {how}"
        );
    }
}

impl fmt::Debug for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Suspect").field("lease", &self.lease).finish_non_exhaustive()
    }
}
