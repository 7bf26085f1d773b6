use std::{
    future::{Future, pending, poll_fn},
    mem,
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use leasehold_core::{Clock, Instant};
use tokio::select;

use crate::{
    blocked::{Report, next_report},
    engine::Engine,
    error::HolderInfo,
    outage_patience::OutagePatience,
    owner::Owner,
    queue::{Joined, NameState, NoLease, earlier},
    self_wait::Suspicion,
};

use super::{
    call::{AcquireCall, AcquireTally},
    end::holder_in,
    line::{InLine, NewLease},
};

impl AcquireCall {
    /// Joins, and waits in line until it is this task's turn or something else comes first. The
    /// caller keeps `line`, and with it the command in flight: a command that is dropped counts as
    /// failed.
    pub(super) async fn in_line<'a>(
        &'a self,
        line: &mut Option<InLine<'a>>,
        holds: Option<Soon<'_>>,
        (looks_from, mut ends): (Instant, Option<Instant>),
        patience: &mut OutagePatience,
        tally: &mut AcquireTally<'_>,
    ) -> Result<NewLease, NoLease> {
        let engine = &*self.engine;
        let in_line = match InLine::join(engine, &self.name, &self.request)? {
            Joined::Taken(lease) => return Ok(lease),
            Joined::InLine(place) => line.insert(place),
        };
        if self.request.tries {
            // Only the first task of all tries: its command ends by then.
            ends = ends.or_else(|| in_line.deadline());
        }
        let mut holds = holds.unwrap_or_else(|| Box::pin(pending()));
        if in_line.deadline().is_none() {
            self.begins_to_wait(in_line, tally);
        }
        let mut report_at = self.next_report(engine.clock.now());
        // The answer to its command wakes the task, and so does the runtime when that takes long: a
        // pair needs no timer.
        let is_in_time = |deadline| earlier(ends, self.started + self.outage_patience) >= deadline;
        let mut lazily = in_line.deadline().is_some_and(is_in_time);
        loop {
            let next = earlier(ends, patience.look_at().min(report_at));
            select! {
                biased;
                lease = in_line.news() => match lease {
                    Some(lease) => return lease,
                    None => self.begins_to_wait(in_line, tally),
                },
                () = &mut holds => return Err(NoLease::HeldByOwner),
                () = alarm(&mut tally.suspicion) => {
                    tally.suspicion.iter_mut().for_each(|suspicion| suspicion.warn(engine));
                }
                () = until(&*engine.clock, next, mem::take(&mut lazily)) => {}
            }
            // Not before: what was answered already counts, however late it is.
            let now = engine.clock.now();
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
                self.report(in_line, now.saturating_since(self.started), now);
                report_at = self.next_report(now);
            }
        }
    }

    /// The lock is not free, or others ask for it.
    fn begins_to_wait(&self, in_line: &InLine<'_>, tally: &mut AcquireTally<'_>) {
        let Self { engine, name, request, owner, .. } = self;
        tally.waits(in_line);
        let suspicion = || Suspicion::of(engine, name, request, owner.as_ref());
        tally.suspicion.get_or_insert_with(suspicion);
    }

    /// Since when the server does not answer, or the part of it where the lock lives.
    fn silent_since(&self) -> Option<Instant> {
        let server = self.engine.outages().state().silent_since();
        let part = self.failing().and_then(|failing| failing.silent_since);
        server.into_iter().chain(part).min()
    }

    fn next_report(&self, now: Instant) -> Instant {
        next_report(self.started, now, self.engine.timing.blocked_after)
    }

    /// Reports a call that has waited for long, unless enough was reported. While the store does not
    /// answer there is no report: no holder is to blame.
    fn report(&self, in_line: &InLine<'_>, waited: Duration, now: Instant) {
        let Self { engine, name, request, .. } = self;
        if !engine.outages().state().unreachable_for(now).is_zero() {
            return;
        }
        let left_out = engine.reports.lock().blocked.take(name, now, engine.timing.blocked_after);
        let Some(left_out) = left_out else { return };
        let Some(position) = in_line.look(NameState::position) else { return };
        let (lock, class) = (name.clone(), request.metrics.class().clone());
        let report = Report { lock, class, waited, position, left_out };
        match engine.holder(name) {
            Some((lease, _)) => {
                report.log(Some(HolderInfo::of_lease(&lease, engine.label.to_string(), now)));
            }
            None => engine.spawn(look_and_report(Arc::clone(engine), report)),
        }
    }

    /// Resolves once the owner holds this lock; `gained` resolves when it got any lease.
    pub(super) fn holds_by<'a>(
        &'a self,
        owner: &'a Owner,
        gained: impl Future<Output = ()> + Send + 'a,
    ) -> Soon<'a> {
        Box::pin(async move {
            gained.await;
            loop {
                // Made before the look, so that a lease gained meanwhile is not missed.
                let gained = owner.gained();
                if owner.held(&self.name).is_some() {
                    return;
                }
                gained.await;
            }
        })
    }
}

/// Boxed, as few who wait need it.
pub(super) type Soon<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Finds out who holds the lock, and logs the report.
async fn look_and_report(engine: Arc<Engine>, report: Report) {
    match engine.inspect(&report.lock).await {
        Ok(inspection) => report.log(holder_in(&engine, inspection)),
        Err(error) => {
            tracing::debug!(lock = %report.lock, %error, "the holder could not be found");
        }
    }
}

/// Resolves when it is time to warn of what a wait looks like.
async fn alarm(suspicion: &mut Option<Suspicion>) {
    match suspicion.as_mut().and_then(Suspicion::alarm) {
        Some(alarm) => alarm.await,
        None => pending().await,
    }
}

/// Resolves at `at`; by the clock as well, as the timers of a busy executor are late. With `lazily`
/// something else is expected before, and a timer is set only when the task is woken without it.
async fn until(clock: &dyn Clock, at: Instant, mut lazily: bool) {
    let mut timer = None;
    // By hand: an acquire that is answered in time sets no timer.
    poll_fn(|cx| {
        if clock.now() >= at {
            return Poll::Ready(());
        }
        if mem::take(&mut lazily) {
            return Poll::Pending;
        }
        timer.get_or_insert_with(|| clock.sleep_until(at)).as_mut().poll(cx)
    })
    .await;
}
