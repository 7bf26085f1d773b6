use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use leasehold_core::{Instant, StoreError};

use crate::{
    driver::{Entered, Found, InLine, Led},
    endurance::Endurance,
    error::AcquireError,
    owner::Owner,
};

use super::{
    Tally,
    call::Wait,
    own::Own,
    timer::{Timer, earlier},
};

/// What a wait in line came to.
pub(super) enum Turned {
    /// Nobody is let in any more.
    Closed,
    /// The runtime is just giving the lock back, and the task does not want to wait in line.
    Settles,
    /// The lock is taken, and the task does not want to wait.
    Taken,
    /// Something was found there.
    Found(Found),
    /// Somebody else has the lock, and the task did not want to wait.
    Busy(InLine),
    /// The task's own command failed for good, or it did not want to wait.
    Failed(StoreError),
    /// The owner holds the lock by now.
    Holds,
    /// Patience is over.
    TimeOver(InLine),
    /// The server has not answered for too long, or not at all.
    Silent(AcquireError),
}

impl Wait {
    fn enter(&self, cx: &Context<'_>) -> Entered {
        self.engine.cohorts.enter(&self.name, &self.wish, cx.waker())
    }

    /// Comes in, and waits in line until it is this task's turn or something else comes first; the first task
    /// waits for the answer to its own command as well.
    pub(super) fn in_line<'a>(
        &'a self,
        mut holds: Option<Soon<'a>>,
        (started, ends, endurance): (Instant, Option<Instant>, &'a mut Endurance),
        tally: &'a mut Tally,
    ) -> impl Future<Output = Turned> + Send + 'a {
        let mut report_at = self.next_report(started);
        let mut timer = Timer::default();
        endurance.looks_from(self.engine.clock.now());
        // Entered here and nowhere else: whatever an async function names it keeps, in every task that
        // waits, also when it has passed it on.
        let mut stands = None;
        poll_fn(move |cx| {
            let engine = &*self.engine;
            if stands.is_none() {
                match self.enter(cx) {
                    Entered::Closed => return Poll::Ready(Turned::Closed),
                    Entered::Settles => return Poll::Ready(Turned::Settles),
                    Entered::Taken => return Poll::Ready(Turned::Taken),
                    Entered::Leads(in_line, lead) => stands = Some((in_line, Some(self.ask(lead)))),
                    Entered::Waits(in_line) => stands = Some((in_line, None)),
                }
            }
            let Some((in_line, own)) = &mut stands else { return Poll::Pending };
            match self.look_at_own(in_line, own, cx) {
                None | Some(Led::Waits) => {}
                Some(Led::Lease(lease)) => {
                    return Poll::Ready(Turned::Found(Found::Lease(lease, false)));
                }
                Some(Led::Failed(error)) => return Poll::Ready(Turned::Failed(error)),
                Some(Led::Busy) => {
                    return leave(&mut stands, Turned::Busy);
                }
            }
            let mut ends = ends;
            match own {
                None => tally.waits(in_line),
                Some(_) if !(engine.cohorts.shared.rules.lead_listens)() => return Poll::Pending,
                // It has just been sent: nothing can have come yet, and as a rule the answer is
                // next. A push wakes the task, and so does the runtime when that takes long.
                Some(own) if !own.is_sent => {
                    own.is_sent = true;
                    if earlier(ends, endurance.look_at()) >= own.deadline {
                        return Poll::Pending;
                    }
                }
                Some(own) if self.wish.tries => ends = ends.or(Some(own.deadline)),
                Some(_) => {}
            }
            if let Poll::Ready(found) = in_line.poll(&self.wish, cx.waker()) {
                return Poll::Ready(Turned::Found(found));
            }
            if is_over(holds.as_mut(), cx) {
                return Poll::Ready(Turned::Holds);
            }
            loop {
                // The clock as well: timers of an executor that is late are late, too.
                let now = engine.clock.now();
                if ends.is_some_and(|ends| ends <= now) {
                    // Before its own command is dropped, which would count as given up.
                    if let Some(error) = self.silent_throughout(started) {
                        return Poll::Ready(Turned::Silent(error));
                    }
                    return leave(&mut stands, Turned::TimeOver);
                }
                // A lease of this very process goes on without the server: it is no outage for those who
                // wait for it.
                let silent_since =
                    || engine.outages().silent_since().filter(|_| !self.is_held_here());
                if endurance.is_over(now, silent_since) {
                    let error = engine.unavailable(&self.name, started, None);
                    return Poll::Ready(Turned::Silent(error));
                }
                if report_at <= now {
                    self.report(in_line, now.saturating_since(started), now);
                    report_at = self.next_report(started);
                }
                let next = earlier(ends, report_at.min(endurance.look_at()));
                if !timer.is_over(engine, next, cx) {
                    return Poll::Pending;
                }
            }
        })
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

/// A task stands in line no longer, and takes its place along.
fn leave(
    stands: &mut Option<(InLine, Option<Own<'_>>)>,
    turned: impl FnOnce(InLine) -> Turned,
) -> Poll<Turned> {
    stands.take().map_or(Poll::Pending, |(in_line, _)| Poll::Ready(turned(in_line)))
}

fn is_over(soon: Option<&mut Soon<'_>>, cx: &mut Context<'_>) -> bool {
    soon.is_some_and(|soon| soon.as_mut().poll(cx).is_ready())
}

/// Boxed, as few who wait need it.
pub(super) type Soon<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
