use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use leasehold_core::{
    Instant, Sleep,
    outage::Watched,
    store::{Acquire as AcquireCommand, AcquireAnswer},
};

use crate::{
    blocked::{Report, next_report},
    cohort::{Cohort, Joined, Lead, NoLease, Progress},
    endurance::Endurance,
    engine::{Engine, InLine, NewLease},
    error::HolderInfo,
    owner::Owner,
    self_wait::Suspicion,
};

use super::call::{Tally, Wait};

pub(super) struct Line<'a> {
    pub(super) place: InLine<'a>,
    /// The command of the first task. Boxed, as most who wait have none.
    own: Option<Box<Own<'a>>>,
}

struct Own<'a> {
    sent_at: Instant,
    deadline: Instant,
    answer: Watched<'a, AcquireAnswer>,
    is_sent: bool,
}

impl Wait {
    /// Joins, and waits in line until it is this task's turn or something else comes first. The
    /// caller keeps `line`, and with it the command in flight: a command that is dropped counts as
    /// failed.
    pub(super) fn in_line<'a, 'b>(
        &'a self,
        line: &'b mut Option<Line<'a>>,
        mut holds: Option<Soon<'b>>,
        (started, looks_from, ends): (Instant, Instant, Option<Instant>),
        endurance: &'b mut Option<Endurance>,
        tally: &'b mut Tally<'_>,
    ) -> impl Future<Output = Result<NewLease, NoLease>> + Send + 'b
    where
        'a: 'b,
    {
        let (mut report_at, mut timer) = (None, Timer::default());
        poll_fn(move |cx| -> Progress<NewLease> {
            let engine = &*self.engine;
            // Joined here and nowhere else: whatever an async function names it keeps, in every
            // task that waits.
            let comes = line.is_none();
            if comes {
                match engine.join(&self.name, &self.request, cx.waker())? {
                    Joined::Taken(lease) => return Poll::Ready(Ok(lease)),
                    Joined::InLine(place, lead) => {
                        let own = lead.map(|lead| Box::new(self.ask(lead)));
                        *line = Some(Line { place, own });
                    }
                }
            }
            let Some(Line { place: in_line, own }) = line.as_mut() else { return Poll::Pending };
            if let Poll::Ready(outcome) = self.poll_own(in_line, own, cx) {
                return Poll::Ready(outcome);
            }
            let mut ends = ends;
            match own {
                None => {
                    tally.waits(in_line);
                    let suspicion = tally.suspicion.get_or_insert_with(|| self.suspicion());
                    suspicion.look(engine, cx);
                }
                // It has just been sent: nothing can have come yet, and as a rule the answer is
                // next. A push wakes the task, and so does the runtime when that takes long.
                Some(own) if !own.is_sent => {
                    own.is_sent = true;
                    if earlier(ends, started + self.outage_patience) >= own.deadline {
                        return Poll::Pending;
                    }
                }
                Some(own) if self.request.tries => ends = ends.or(Some(own.deadline)),
                Some(_) => {}
            }
            // One that has just come is woken for an offer: `join` has left its waker.
            if !comes && let Poll::Ready(outcome) = in_line.poll(&self.request, cx.waker()) {
                return Poll::Ready(outcome);
            }
            if holds.as_mut().is_some_and(|soon| soon.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(Err(NoLease::HeldByOwner));
            }
            let endurance =
                endurance.get_or_insert_with(|| Endurance::new(self.outage_patience, started));
            loop {
                // The clock as well: timers of an executor that is late are late, too.
                let now = engine.clock.now();
                let report_at = report_at.get_or_insert_with(|| self.next_report(started, now));
                if ends.is_some_and(|ends| ends <= now) {
                    let is_silent = self.is_silent_throughout(started);
                    let over = if is_silent { NoLease::Unavailable } else { NoLease::TimedOut };
                    return Poll::Ready(Err(over));
                }
                // A lease of this very process goes on without the server: no outage for those who
                // wait for it.
                let silent_since = || self.silent_since(started).filter(|_| !self.is_held_here());
                if endurance.is_over(now, looks_from, silent_since) {
                    return Poll::Ready(Err(NoLease::Unavailable));
                }
                if *report_at <= now {
                    self.report(in_line, now.saturating_since(started), now);
                    *report_at = self.next_report(started, now);
                }
                let next = earlier(ends, endurance.look_at().min(*report_at));
                if !timer.is_over(engine, next, cx) {
                    return Poll::Pending;
                }
            }
        })
    }

    fn suspicion(&self) -> Suspicion {
        Suspicion::of(&self.engine, &self.name, &self.request, self.owner.as_ref())
    }

    /// Since when the server does not answer, or the part of it where the lock lives.
    fn silent_since(&self, started: Instant) -> Option<Instant> {
        let server = self.engine.outages().silence().silent_since();
        let part = self.failing(started).and_then(|failing| failing.silent_since);
        server.into_iter().chain(part).min()
    }

    /// Sends the command of the first task, for all that come after it.
    fn ask(&self, lead: Lead) -> Own<'_> {
        let Self { engine, name, request, .. } = self;
        let Lead { id, heartbeat, keeps, sent_at, begun } = lead;
        let deadline = sent_at + engine.timing.command_deadline(request.terms.ttl);
        let command = AcquireCommand {
            name: name.clone(),
            id,
            ttl: request.terms.ttl,
            acks: request.terms.acks,
            watermark: begun.max(engine.watermarks.of(sent_at, name)),
            label: request.label.as_ref().unwrap_or(&engine.label).clone(),
            keeps,
            wait: heartbeat,
        };
        let answer = engine.store.ask(sent_at, command, deadline);
        Own { sent_at, deadline, answer, is_sent: false }
    }

    fn poll_own(
        &self,
        in_line: &mut InLine<'_>,
        own: &mut Option<Box<Own<'_>>>,
        cx: &mut Context<'_>,
    ) -> Progress<NewLease> {
        let Some(Own { sent_at, answer, .. }) = own.as_deref_mut() else { return Poll::Pending };
        let (sent_at, Poll::Ready(answer)) = (*sent_at, Pin::new(answer).poll(cx)) else {
            return Poll::Pending;
        };
        *own = None;
        in_line.on_first_reply(&self.request, sent_at, answer)
    }

    fn next_report(&self, started: Instant, now: Instant) -> Instant {
        next_report(started, now, self.engine.timing.blocked_after)
    }

    /// Reports a call that has waited for long, unless enough was reported.
    pub(super) fn report(&self, in_line: &InLine<'_>, waited: Duration, now: Instant) {
        let Self { engine, name, request, .. } = self;
        let Some(left_out) = engine.take_report(name, now) else { return };
        let Some(position) = in_line.look(Cohort::position) else { return };
        let (lock, class) = (name.clone(), request.metrics.class().clone());
        let report = Report { lock, class, waited, position, left_out };
        match engine.holder(name) {
            Some((lease, _)) => {
                report.log(Some(HolderInfo::of_lease(&lease, engine.label.to_string(), now)));
            }
            None => engine.report_after_a_look(report),
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

/// One timer for all that a wait is woken for, as many tasks may wait.
#[derive(Default)]
struct Timer(Option<(Instant, Sleep)>);

impl Timer {
    /// Whether it is `at`; the task is woken by then.
    fn is_over(&mut self, engine: &Engine, at: Instant, cx: &mut Context<'_>) -> bool {
        let (_, sleep) = match &mut self.0 {
            Some(timer) if timer.0 == at => timer,
            other => other.insert((at, engine.clock.sleep_until(at))),
        };
        sleep.as_mut().poll(cx).is_ready()
    }
}

/// The earlier of two times, of which the first may never come.
fn earlier(one: Option<Instant>, other: Instant) -> Instant {
    one.map_or(other, |one| one.min(other))
}
