use std::{future::pending, mem, pin::pin, sync::Arc, time::Duration};

use leasehold_core::{
    Instant, Mode, Mutex,
    lease::{Holds, LeaseState, LossReason},
    metric::{AcquireOutcome, ClassMetrics},
    sleep_until_some,
};
use tokio::{select, sync::futures::Notified, task::unconstrained};
use tracing::Instrument;

use crate::{
    durations::MOMENT,
    error::{AcquireError, HolderInfo, LeaseLost, ReenterError},
    guard::Guard,
    owner::{Owner, SharedLease},
    queue::{Joined, NameState, NoLease},
    reports::Report,
    spans::AcquireSpan,
};

use super::{
    end::{failed, holder_in, unavailable},
    line::{AcquireCall, InLine, NewLease, WaitLimit},
    outage_patience::OutagePatience,
    suspicion::Suspicion,
};

impl AcquireCall {
    /// Acquires, or gives up.
    pub(crate) async fn run(&mut self) -> Result<Guard, AcquireError> {
        if !self.engine.is_here(self.started) {
            return Err(self.forked());
        }
        let (span, entered) = AcquireSpan::of(self);
        let mut tally = AcquireTally {
            metrics: Arc::clone(&self.metrics),
            span,
            started: self.started,
            found: Contention::Free,
            behind: None,
            suspicion: None,
            outcome: AcquireOutcome::Cancelled,
        };
        let mut outcome = self.wait(&mut tally).instrument(entered.clone()).await;
        if tally.found == Contention::Kept {
            let now = self.engine.clock.now();
            let latest = self.started + self.engine.timing.command_deadline(self.terms.ttl);
            let ends = now.min(latest) + MOMENT;
            // Unless the process was away for so long that this is over.
            if now < ends {
                // The lock may be idle, and is given up when somebody waits for it.
                (self.recall_ends, self.tries) = (Some(ends), false);
                outcome = self.wait(&mut tally).instrument(entered.clone()).await;
            }
        }
        if let Err(error) = &mut outcome {
            let engine = &self.engine;
            if engine.is_forked() {
                // The call is counted where it goes on.
                mem::forget(tally);
                return outcome;
            }
            tally.suspicion.iter().for_each(|suspicion| suspicion.explain(engine, error));
            tally.outcome = how_it_failed(error, matches!(self.limit, WaitLimit::Try));
            tally.span.failed(error, tally.outcome);
        }
        // Subscribers and recorders hear of both, and may panic: while the guard is here, and gives the lock back.
        drop((tally, entered));
        outcome
    }

    /// Enters the lease that the owner has, or stands in line until the task gets one or none.
    async fn wait(&self, tally: &mut AcquireTally) -> Result<Guard, AcquireError> {
        let (mut ends, mut looks_from) = (self.recall_ends, self.started);
        if let WaitLimit::For(wait) = self.limit
            && !wait.is_zero()
        {
            ends = ends.or(Some(self.started + wait));
        }
        let known = self.engine.outages().state();
        let mut patience = OutagePatience::new(self.outage_patience, self.started, &known);
        let mut is_cut_off = known.has_lasted(self.outage_patience, self.started);
        loop {
            // Made before the look, so that a lease gained meanwhile is not missed.
            let gained = self.owner.as_ref().map(Owner::gained);
            if let Some(guard) = self.enter_held(ends).await? {
                tally.outcome = AcquireOutcome::Reentered;
                tally.span.enters(&guard.lease.0);
                return Ok(guard);
            }
            if mem::take(&mut is_cut_off) {
                Box::pin(self.until_reached(ends)).await?;
            }
            let (mut line, times) = (None, (looks_from, ends));
            // A task that has used up its budget of tokio still takes what it was offered, and sees
            // that its time is over.
            let standing = self.in_line(&mut line, gained, times, &mut patience, tally);
            match unconstrained(standing).await {
                Ok(lease) => {
                    let was_held = lease.was_held();
                    let guard = self.take_over(lease)?;
                    if was_held {
                        tally.finds_held();
                    }
                    tally.outcome = AcquireOutcome::Acquired;
                    tally.span.begins_hold(self, &guard.lease.0);
                    return Ok(guard);
                }
                Err(NoLease::Dismissed) => drop(line),
                Err(NoLease::Releasing) => self.until_released(&mut ends).await?,
                Err(why) => return Err(Box::pin(self.give_up(why, line, tally)).await),
            }
            // A task that is polled seldom may come here again and again, and always too late.
            looks_from = self.engine.clock.now();
            if ends.is_some_and(|ends| ends <= looks_from) {
                return Err(Box::pin(self.too_late()).await);
            }
            if !self.engine.is_here(looks_from) {
                return Err(self.forked());
            }
        }
    }

    /// In an outage that has lasted for longer than the patience, waits until the server answers a probe, which
    /// all calls share: a command of this call would only have to be withdrawn.
    // ADR 0013
    async fn until_reached(&self, ends: Option<Instant>) -> Result<(), AcquireError> {
        let Self { engine, name, started, .. } = self;
        // Made before the look, so that no answer is missed.
        let (reached, now) = (engine.outages().ended(), engine.clock.now());
        let known = engine.outages().state();
        let is_over = !known.has_lasted(self.outage_patience, now);
        if is_over || self.knows(|state| state.needs_no_server(now)) {
            return Ok(());
        }
        if let Some(probe) = engine.store.probe(now, name, now + engine.timing.command_timeout) {
            engine.spawn(probe);
        }
        let until = now + known.allowance().min(self.outage_patience);
        select! {
            biased;
            _ = engine.until_forked() => Err(self.forked()),
            () = reached => Ok(()),
            () = engine.clock.sleep_until(ends.map_or(until, |ends| ends.min(until))) => {
                Err(unavailable(engine, name, *started, None))
            }
        }
    }

    /// Joins, and waits in line until it is this task's turn or something else comes first. The
    /// caller keeps `line`, and with it the command in flight: a command that is dropped counts as
    /// failed. `gained` resolves when the owner got any lease.
    async fn in_line<'a>(
        &'a self,
        line: &mut Option<InLine<'a>>,
        gained: Option<Notified<'_>>,
        (looks_from, mut ends): (Instant, Option<Instant>),
        patience: &mut OutagePatience,
        tally: &mut AcquireTally,
    ) -> Result<NewLease, NoLease> {
        let engine = &*self.engine;
        let in_line = match self.join()? {
            Joined::Taken(lease) => return Ok(lease),
            Joined::InLine(ticket, lead) => line.insert(InLine::new(self, ticket, lead)),
        };
        if self.tries {
            // Only the first task of all tries: its command ends by then.
            ends = ends.or_else(|| in_line.deadline());
        }
        let mut held = pin!(self.until_held_by_owner(gained));
        if in_line.deadline().is_none() {
            tally.waits(self, in_line);
        }
        let next_report = |now| next_report(self.started, now, self.blocked_after);
        let mut report_at = next_report(looks_from);
        loop {
            let warn_at = tally.suspicion.as_ref().and_then(|suspicion| suspicion.warn_at);
            let soonest = patience.look_at().min(report_at);
            let next = [ends, warn_at].into_iter().flatten().fold(soonest, Instant::min);
            // The store answers the command of this task by its deadline: until then no timer is needed.
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
            if patience.is_over(now, looks_from, || self.silent_since()) {
                // A lease of this very process goes on without the server: its end ends the patience.
                if !self.is_held_here() {
                    return Err(NoLease::Unavailable);
                }
                patience.look_again(now + engine.outages().state().allowance());
            }
            if report_at <= now {
                self.report(in_line, now);
                report_at = next_report(now);
            }
        }
    }

    /// Enters the lease that the owner has already, if it has one.
    async fn enter_held(&self, until: Option<Instant>) -> Result<Option<Guard>, AcquireError> {
        let Self { engine, .. } = self;
        let closed = engine.has_stopped() || engine.ending.refuses();
        let held = self.held().filter(|held| match held.lease.state() {
            // Also while a drain refuses new leases.
            LeaseState::Held { .. } => true,
            LeaseState::Lost(_) => !closed,
            // Its last guard is just releasing it.
            LeaseState::Released => false,
        });
        let Some(held) = held else {
            return if closed { Err(self.closed()) } else { Ok(None) };
        };
        let guard = match Guard::enter(engine, &held, until).await {
            Ok(Some(guard)) => guard,
            Ok(None) => return Ok(None),
            Err(ReenterError::Lost(lost)) => return Err(AcquireError::Lost(lost)),
            Err(ReenterError::TooManyHolds { lock }) => {
                return Err(AcquireError::TooManyHolds { lock });
            }
            Err(ReenterError::Store(error)) => return Err(error.into()),
        };
        if let Some(hold) = self.min_hold
            && let LeaseState::Lost(reason) = held.lease.close_if_held(engine.clock.now() + hold)
        {
            return Err(AcquireError::Lost(LeaseLost::new(&held.lease, reason)));
        }
        Ok(Some(guard))
    }

    /// The lease that the call may enter: one of its owner, or that of the readers of this runtime, unless it is to let
    /// a writer in first. Who reads already never waits for itself.
    fn held(&self) -> Option<Arc<SharedLease>> {
        let Self { engine, name, owner, by, terms, .. } = self;
        let held = || owner.as_ref()?.held(name);
        if terms.mode == Mode::Write {
            return held();
        }
        let reads = by.as_ref().is_some_and(|owner| owner.reads(name));
        let now = engine.clock.now();
        let admits = || reads || self.knows(|state| state.admits(now, self.started));
        let shared = || held().filter(|held| held.lease.is_held() && admits());
        by.as_ref().and_then(|owner| owner.held(name)).or_else(shared)
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

    /// Waits until no release or withdrawal of this process is on its way. The wait and the command
    /// after it take at most one command timeout together.
    async fn until_released(&self, ends: &mut Option<Instant>) -> Result<(), AcquireError> {
        let Self { engine, name, .. } = self;
        let time = engine.timing.command_deadline(self.terms.ttl);
        let until = *ends.get_or_insert(self.started + time);
        loop {
            let mode = self.terms.mode;
            let awaited = engine.with(name, mode, |entry, _| entry.state.awaits_release());
            let over = match awaited.unwrap_or(Ok(None)) {
                Ok(Some(over)) => over,
                Ok(None) => return Ok(()),
                Err(error) => return Err(failed(engine, name, self.started, error)),
            };
            select! {
                biased;
                _ = engine.until_forked() => return Err(self.forked()),
                () = over => {}
                () = engine.clock.sleep_until(until) => return Err(self.unheard()),
            }
        }
    }

    /// The error of a call that gets no lease.
    async fn give_up(
        &self,
        why: NoLease,
        line: Option<InLine<'_>>,
        tally: &mut AcquireTally,
    ) -> AcquireError {
        let Self { engine, name, .. } = self;
        let is_over = matches!(why, NoLease::Unavailable | NoLease::TimedOut) && !self.tries;
        if let Some(error) = is_over.then(|| self.stood_still()).flatten() {
            return error;
        }
        match why {
            NoLease::Closed => return self.closed(),
            NoLease::Failed(error) => return failed(engine, name, self.started, error),
            NoLease::Unavailable => {
                // While the task stands in line: to leave it may count as a failure.
                let failing = self.failing().filter(|failing| failing.failed > 0);
                return unavailable(engine, name, self.started, failing);
            }
            NoLease::TimedOut if self.tries => return self.unheard(),
            NoLease::Busy if line.is_none() => {
                if let Some(error) = self.asked_in_vain() {
                    return error;
                }
                tally.finds_held();
            }
            NoLease::Kept => {
                tally.finds_held();
                tally.found = Contention::Kept;
            }
            NoLease::TimedOut if !self.knows(NameState::is_known_held) => {}
            NoLease::TimedOut | NoLease::Busy | NoLease::Releasing | NoLease::Dismissed => {
                tally.finds_held();
            }
        }
        self.timeout(line).await
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
        let within = self.blocked_after.min(engine.timing.blocked_after);
        let left_out = engine.reports.lock().blocked.take(name, now, within);
        let Some(left_out) = left_out else { return };
        let Some(position) = in_line.look(NameState::position) else { return };
        let (lock, class) = (name.clone(), self.metrics.class().clone());
        let waited = now.saturating_since(self.started);
        let report = Report { lock, class, waited, position, left_out };
        if let Some((lease, _)) = engine.holder(name) {
            return report.log(Some(HolderInfo::of_lease(&lease, engine.label.to_string(), now)));
        }
        let heard = self.look(NameState::heard).flatten();
        let looker = Arc::clone(engine);
        engine.spawn(async move {
            match looker.inspect(&report.lock).await {
                Ok(inspection) => {
                    let holder = holder_in(&looker, inspection);
                    let now = looker.clock.now();
                    report.log(holder.map(|holder| holder.heard(heard, now)));
                }
                Err(error) => {
                    tracing::debug!(lock = %report.lock, %error, "the holder could not be found");
                }
            }
        });
    }

    /// Makes a guard of a lease that was taken, and counts it.
    fn take_over(&self, new: NewLease) -> Result<Guard, AcquireError> {
        let Self { engine, owner, .. } = self;
        let NewLease { lease, is_watched, woken } = new;
        let holds = Mutex::new(Holds::first());
        let held = Arc::new(SharedLease { lease, owner: owner.clone(), holds });
        if let Some(owner) = owner {
            owner.gain(&held);
        }
        // Before subscribers and recorders hear of it: if one of them panics, the guard gives the lock back.
        let guard = Guard::new(Arc::clone(engine), held);
        let lease = &guard.lease.0;
        lease.count();
        if let Some((source, handover)) = woken {
            lease.metrics().wakeup(source, handover);
        }
        if !is_watched {
            let _ = lease.lose(LossReason::WatchdogStopped);
        }
        tracing::debug!(lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), "acquired");
        self.metrics.waited(lease.since().saturating_since(self.started));
        // After the lease is watched: a shutdown from now on finds it there.
        if engine.ending.refuses() {
            return Err(self.closed());
        }
        Ok(guard)
    }
}

/// What a call has learnt of its lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contention {
    /// Nothing: it may be free.
    Free,
    /// Another has it.
    Held,
    /// Another runtime has it, and may keep it idle.
    Kept,
}

/// Counts how a call went, also when its future is dropped.
struct AcquireTally {
    metrics: Arc<ClassMetrics>,
    span: AcquireSpan,
    started: Instant,
    found: Contention,
    /// How many stood before the call when it came.
    behind: Option<u64>,
    /// Known once it waits.
    suspicion: Option<Suspicion>,
    outcome: AcquireOutcome,
}

impl AcquireTally {
    /// Another has the lock, by what the server said or this runtime knows.
    fn finds_held(&mut self) {
        if mem::replace(&mut self.found, Contention::Held) == Contention::Free
            && let Some(behind) = self.behind
        {
            self.metrics.queued(behind);
        }
    }

    /// The lock is not free, or others ask for it.
    fn waits(&mut self, call: &AcquireCall, in_line: &InLine<'_>) {
        if self.suspicion.is_some() {
            return;
        }
        self.metrics.waits.began(self.started);
        let (behind, is_held) =
            in_line.look(|state, _| (state.length(), state.is_known_held())).unwrap_or_default();
        self.behind = Some(behind);
        self.span.waits(behind);
        if is_held {
            self.finds_held();
        }
        self.suspicion = Some(Suspicion::of(call));
    }
}

impl Drop for AcquireTally {
    fn drop(&mut self) {
        if self.suspicion.is_some() {
            self.metrics.waits.ended(self.started);
        }
        self.metrics.acquire(self.outcome);
        self.span.ends(self.outcome);
        // Now and not before: a share of the calls is never above all of them.
        if self.found != Contention::Free {
            self.metrics.contended();
        }
    }
}

/// How a call is counted that failed; `tries` for one that only tried.
fn how_it_failed(error: &AcquireError, tries: bool) -> AcquireOutcome {
    match error {
        AcquireError::Timeout(_) if tries => AcquireOutcome::Busy,
        AcquireError::Timeout(_) => AcquireOutcome::Timeout,
        AcquireError::Unavailable(_) => AcquireOutcome::Unavailable,
        AcquireError::Lost(_) => AcquireOutcome::Lost,
        _ => AcquireOutcome::Error,
    }
}

/// When a call that waits since `started` is to be reported next: after `blocked_after`, then
/// at 2, 4, 8 … times that.
fn next_report(started: Instant, now: Instant, blocked_after: Duration) -> Instant {
    let waited = now.saturating_since(started);
    let mut next = blocked_after.max(Duration::from_millis(1));
    while next <= waited {
        next = next.saturating_mul(2);
    }
    started + next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::at(Duration::from_secs(seconds))
    }

    #[test]
    fn a_wait_is_reported_whenever_it_has_doubled() {
        let next = |now| next_report(at(100), at(now), Duration::from_secs(10));
        assert_eq!(
            [100, 109, 110, 119, 120, 139, 140].map(next),
            [at(110), at(110), at(120), at(120), at(140), at(140), at(180)]
        );
        let never = next_report(at(100), at(1_000_000), Duration::MAX);
        assert!(never > at(1_000_000_000));
    }
}
