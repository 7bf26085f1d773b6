use std::{future::pending, mem, pin::pin, sync::Arc};

use leasehold_core::{
    Instant,
    metric::{AcquireOutcome, ClassMetrics},
    sleep_until_some,
};
use leasehold_watchdog::HeldLease;
use tokio::{select, sync::futures::Notified};

use crate::{
    durations::{LOG_PAUSE, SUSPICION},
    engine::Engine,
    error::{AcquireError, HolderInfo, SelfWait},
    graph::{OwnerWait, own_cycle_of},
    guard::Guard,
    queue::{NameState, NoLease},
    reports::{Report, next_report},
};

use super::{
    end::holder_in,
    line::{AcquireCall, InLine, NewLease},
    outage_patience::OutagePatience,
};

impl AcquireCall {
    /// Joins, and waits in line until it is this task's turn or something else comes first. The
    /// caller keeps `line`, and with it the command in flight: a command that is dropped counts as
    /// failed. `gained` resolves when the owner got any lease.
    pub(super) async fn in_line<'a>(
        &'a self,
        line: &mut Option<InLine<'a>>,
        gained: Option<Notified<'_>>,
        (looks_from, mut ends): (Instant, Option<Instant>),
        patience: &mut OutagePatience,
        tally: &mut AcquireTally<'_>,
    ) -> Result<NewLease, NoLease> {
        let engine = &*self.engine;
        let in_line = match InLine::join(self)? {
            Ok(lease) => return Ok(lease),
            Err(place) => line.insert(place),
        };
        if self.tries {
            // Only the first task of all tries: its command ends by then.
            ends = ends.or_else(|| in_line.deadline());
        }
        let mut held = pin!(self.until_held_by_owner(gained));
        if in_line.deadline().is_none() {
            tally.waits(self, in_line);
        }
        let next_report = |now| next_report(self.started, now, engine.timing.blocked_after);
        let mut report_at = next_report(looks_from);
        loop {
            let warn_at = tally.suspicion.as_ref().and_then(|suspicion| suspicion.warn_at);
            let soonest = patience.look_at().min(report_at);
            let next = [ends, warn_at].into_iter().flatten().fold(soonest, Instant::min);
            // The store answers its own command in time: as a rule that needs no timer here.
            let is_earlier = in_line.deadline().is_none_or(|deadline| next < deadline);
            select! {
                biased;
                lease = in_line.news() => match lease {
                    Some(lease) => return lease,
                    None => tally.waits(self, in_line),
                },
                () = &mut held => return Err(NoLease::Dismissed),
                () = sleep_until_some(&*engine.clock, is_earlier.then_some(next)) => {}
            }
            // Not before: what was answered already counts, however late it is.
            let now = engine.clock.now();
            if let Some(suspicion) = &mut tally.suspicion {
                suspicion.warn_if_due(engine, now);
            }
            if ends.is_some_and(|ends| ends <= now) {
                let is_silent = self.is_silent_throughout();
                return Err(if is_silent { NoLease::Unavailable } else { NoLease::TimedOut });
            }
            // A lease of this very process goes on without the server: no outage for those who
            // wait for it.
            let silent_since = || self.silent_since().filter(|_| !self.is_held_here());
            if patience.is_over(now, looks_from, silent_since) {
                return Err(NoLease::Unavailable);
            }
            if report_at <= now {
                self.report(in_line, now);
                report_at = next_report(now);
            }
        }
    }

    /// Since when the server does not answer, or the part of it where the lock lives.
    fn silent_since(&self) -> Option<Instant> {
        let server = self.engine.outages().state().silent_since();
        let part = self.failing().and_then(|failing| failing.silent_since);
        server.into_iter().chain(part).min()
    }

    /// Reports a call that has waited for long, unless enough was reported. While the store does not
    /// answer there is no report: no holder is to blame.
    fn report(&self, in_line: &InLine<'_>, now: Instant) {
        let Self { engine, name, .. } = self;
        if !engine.outages().state().unreachable_for(now).is_zero() {
            return;
        }
        let left_out = engine.reports.lock().blocked.take(name, now, engine.timing.blocked_after);
        let Some(left_out) = left_out else { return };
        let Some(position) = in_line.look(NameState::position) else { return };
        let (lock, class) = (name.clone(), self.metrics.class().clone());
        let waited = now.saturating_since(self.started);
        let report = Report { lock, class, waited, position, left_out };
        if let Some((lease, _)) = engine.holder(name) {
            return report.log(Some(HolderInfo::of_lease(&lease, engine.label.to_string(), now)));
        }
        let looker = Arc::clone(engine);
        engine.spawn(async move {
            match looker.inspect(&report.lock).await {
                Ok(inspection) => report.log(holder_in(&looker, inspection)),
                Err(error) => {
                    tracing::debug!(lock = %report.lock, %error, "the holder could not be found");
                }
            }
        });
    }

    /// Resolves once the owner holds this lock; `gained` resolves when it got any lease.
    async fn until_held_by_owner(&self, gained: Option<Notified<'_>>) {
        let (Some(owner), Some(mut gained)) = (&self.owner, gained) else { return pending().await };
        loop {
            gained.await;
            // Made before the look, so that a lease gained meanwhile is not missed.
            gained = owner.gained();
            if owner.held(&self.name).is_some() {
                return;
            }
        }
    }
}

/// Whether a call waits for its own process, as it looked when the call began to wait.
pub(super) struct Suspicion {
    /// It waits for this lease of its own task or of a scope it is not in, which may never end while
    /// it waits.
    suspect: Option<(Arc<HeldLease>, SelfWait)>,
    /// When to warn of it; `None` once that is done.
    warn_at: Option<Instant>,
    /// The call has an owner, which may be part of a cycle.
    waiting: Option<OwnerWait>,
}

impl Suspicion {
    /// The call is about to wait.
    pub(super) fn of(call: &AcquireCall) -> Self {
        let AcquireCall { engine, name, owner, caller, .. } = call;
        let suspect = engine
            .holder(name)
            .and_then(|(lease, holder)| Some((lease, caller.waits_for_itself(holder)?)));
        let warn_at = suspect.is_some().then(|| engine.clock.now() + SUSPICION);
        let waiting = owner.as_ref().map(|owner| OwnerWait::new(owner, name));
        Self { suspect, warn_at, waiting }
    }

    fn warn_if_due(&mut self, engine: &Engine, now: Instant) {
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
        timeout.cycle = self.waiting.as_ref().and_then(|waiting| own_cycle_of(engine, waiting));
    }

    fn held_suspect(&self) -> Option<&(Arc<HeldLease>, SelfWait)> {
        self.suspect.as_ref().filter(|(lease, _)| lease.is_held())
    }
}

/// What a call has learnt of its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contention {
    /// Nothing: it may be free.
    Free,
    /// Another has it.
    Held,
    /// Another runtime has it, and may keep it idle.
    Kept,
}

/// Counts how a call went, also when its future is dropped.
pub(super) struct AcquireTally<'a> {
    pub(super) metrics: &'a ClassMetrics,
    pub(super) tries: bool,
    pub(super) started: Instant,
    pub(super) found: Contention,
    /// How many stood before the call when it came.
    pub(super) behind: Option<u64>,
    pub(super) reentered: bool,
    /// Known once it waits.
    pub(super) suspicion: Option<Suspicion>,
    pub(super) outcome: AcquireOutcome,
}

impl AcquireTally<'_> {
    /// Another has the lock, by what the server said or this runtime knows.
    pub(super) fn finds_held(&mut self) {
        if mem::replace(&mut self.found, Contention::Held) == Contention::Free
            && let Some(behind) = self.behind
        {
            self.metrics.queued(behind);
        }
    }

    /// The lock is not free, or others ask for it.
    pub(super) fn waits(&mut self, call: &AcquireCall, in_line: &InLine<'_>) {
        if self.suspicion.is_some() {
            return;
        }
        self.metrics.waits.began(self.started);
        let (behind, is_held) =
            in_line.look(|state, _| (state.length(), state.is_known_held())).unwrap_or_default();
        self.behind = Some(behind);
        if is_held {
            self.finds_held();
        }
        self.suspicion = Some(Suspicion::of(call));
    }

    pub(super) fn finish(mut self, outcome: &Result<Guard, AcquireError>) {
        self.outcome = match outcome {
            Ok(_) if self.reentered => AcquireOutcome::Reentered,
            Ok(_) => AcquireOutcome::Acquired,
            Err(AcquireError::Timeout(_)) if self.tries => AcquireOutcome::Busy,
            Err(AcquireError::Timeout(_)) => AcquireOutcome::Timeout,
            Err(AcquireError::Unavailable(_)) => AcquireOutcome::Unavailable,
            Err(AcquireError::Lost(_)) => AcquireOutcome::Lost,
            Err(_) => AcquireOutcome::Error,
        };
    }
}

impl Drop for AcquireTally<'_> {
    fn drop(&mut self) {
        if self.suspicion.is_some() {
            self.metrics.waits.ended(self.started);
        }
        self.metrics.acquire(self.outcome);
        // Now and not before: a share of the calls is never above all of them.
        if self.found != Contention::Free {
            self.metrics.contended();
        }
    }
}
