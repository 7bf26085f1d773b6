use std::{
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, RuntimeLabel, StoreError, Terms, Ttl,
    lease::LossReason,
    metric::{ClassMetrics, WakeSource},
    store::AcquireAnswer,
};
use leasehold_watchdog::{HeldLease, Renewing, Share};

use crate::{
    cohort::{Answer, Cohort, Env, Joined, NoLease, Progress, Taken, Ticket},
    owner::Caller,
};

use super::{core::Engine, table::Member};

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) terms: Terms,
    pub(crate) tries: bool,
    pub(crate) renews: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) min_hold: Option<Duration>,
    /// For how long the lock stays with the runtime when it is idle; zero for not at all.
    pub(crate) keep_idle: Duration,
    /// Who asks; known once the call is polled.
    pub(crate) caller: Option<Caller>,
    /// What others see as the holder; `None` for the runtime's label.
    pub(crate) label: Option<RuntimeLabel>,
    pub(crate) metrics: Arc<ClassMetrics>,
}

/// The place of a task in its cohort; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct InLine<'a> {
    engine: &'a Engine,
    name: &'a LockName,
    ticket: Ticket,
    /// Whether the place is given up already.
    left: bool,
}

/// A lease that a task has taken under the shard's mutex, and that is not counted yet.
pub(crate) struct NewLease {
    lease: Arc<HeldLease>,
    is_watched: bool,
    woken: Option<(WakeSource, Duration)>,
}

impl Engine {
    /// See [`Cohort::join`]; `Closed` after the end.
    pub(crate) fn join<'a>(
        &'a self,
        name: &'a LockName,
        request: &Request,
        waker: &Waker,
    ) -> Result<Joined<InLine<'a>, NewLease>, NoLease> {
        self.listen();
        let entry = self.with_new(name, &request.metrics, |member, env| {
            let keeps = !request.keep_idle.is_zero();
            let keep = keeps.then(|| self.keep(&member.cohort, env.now, name, request.keep_idle));
            Ok(match member.cohort.join(env, request.terms, request.tries, keep, waker)? {
                Joined::InLine(ticket, lead) => {
                    Joined::InLine(InLine { engine: self, name, ticket, left: false }, lead)
                }
                Joined::Taken(taken) => {
                    let ticket = taken.offer.ticket;
                    Joined::Taken(self.lease(member, env, ticket, taken, request))
                }
            })
        });
        entry.unwrap_or(Err(NoLease::Closed))
    }

    /// See [`Cohort::is_released`]; ready with `false` when it is `until`.
    pub(crate) fn poll_released(
        &self,
        name: &LockName,
        until: Instant,
        waker: &Waker,
    ) -> Poll<Result<bool, StoreError>> {
        let released = self.with(name, |member, env| {
            let is_released = member.cohort.is_released(waker, until);
            let is_over = is_released != Ok(false) || env.now >= until;
            if is_over { Poll::Ready(is_released) } else { Poll::Pending }
        });
        released.unwrap_or(Poll::Ready(Ok(true)))
    }

    /// Turns a taken token into a watched lease. No await lies between: it cannot leak.
    fn lease(
        &self,
        member: &mut Member,
        env: &Env<'_>,
        ticket: Ticket,
        taken: Taken,
        request: &Request,
    ) -> NewLease {
        let Taken { turn, token: fence, offer, until, watch, first } = taken;
        let number = if first { turn.id().number() } else { ticket };
        let renewing = renewing(request.renews, until.saturating_since(env.now), turn.ttl());
        let Request { max_hold, min_hold, .. } = *request;
        let share = Share { turn, number, fence, until, renewing, max_hold, min_hold };
        let metrics = Arc::clone(&request.metrics);
        member.holder = request.caller;
        let (lease, watch) = self.watches.take(watch, &share, env.now, metrics);
        if let Some(watch) = watch {
            member.cohort.on_watch(watch);
        }
        let woken = offer.source.map(|source| (source, env.now.saturating_since(offer.at)));
        NewLease { lease, is_watched: watch.is_some(), woken }
    }
}

impl NewLease {
    /// Whether another had the lock before; unknown if the grant came as an answer.
    pub(crate) fn was_held(&self) -> bool {
        matches!(self.woken, Some((WakeSource::Local | WakeSource::Push, _)))
    }

    pub(crate) fn count(self, metrics: &ClassMetrics) -> Arc<HeldLease> {
        let Self { lease, is_watched, woken } = self;
        lease.count();
        if let Some((source, handover)) = woken {
            metrics.wakeup(source, handover);
        }
        if !is_watched {
            let _ = lease.lose(LossReason::WatchdogStopped);
        }
        lease
    }
}

/// How a turn is renewed for a lease: one that is not to be renewed still gets its whole ttl.
fn renewing(renews: bool, left: Duration, ttl: Ttl) -> Renewing {
    match renews {
        true => Renewing::Always,
        false if left < ttl.get().mul_f64(0.9) => Renewing::Once,
        false => Renewing::Never,
    }
}

impl InLine<'_> {
    pub(crate) fn on_first_reply(
        &mut self,
        request: &Request,
        sent_at: Instant,
        result: Result<AcquireAnswer, StoreError>,
    ) -> Progress<NewLease> {
        let engine = self.engine;
        if let Ok(AcquireAnswer::Granted(granted)) = &result {
            engine.saw(sent_at, self.name, granted);
        }
        let answer = Answer { sent_at, result: engine.counted(result) };
        let progress = engine.with_new(self.name, &request.metrics, |member, env| {
            let tries = request.tries;
            let progress = member.cohort.on_first_reply(env, self.ticket, tries, answer);
            self.granted(member, env, request, progress)
        });
        progress.unwrap_or(Poll::Pending)
    }

    pub(crate) fn poll(&mut self, request: &Request, waker: &Waker) -> Progress<NewLease> {
        let progress = self.engine.with(self.name, |member, env| {
            let progress = member.cohort.poll(env, self.ticket, waker);
            self.granted(member, env, request, progress)
        });
        progress.unwrap_or(Poll::Ready(Err(NoLease::Dismissed)))
    }

    fn granted(
        &mut self,
        member: &mut Member,
        env: &Env<'_>,
        request: &Request,
        progress: Progress<Taken>,
    ) -> Progress<NewLease> {
        progress.map_ok(|taken| {
            self.left = true;
            self.engine.lease(member, env, self.ticket, taken, request)
        })
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Cohort, Ticket) -> T) -> Option<T> {
        self.engine.look(self.name, |cohort| look(cohort, self.ticket))
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if !self.left {
            self.engine.with(self.name, |member, env| member.cohort.leave(env, self.ticket));
        }
    }
}
