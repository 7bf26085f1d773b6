use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, RuntimeLabel, StoreError, Terms, Ttl,
    lease::LossReason,
    metric::{ClassMetrics, WakeSource},
    outage::Watched,
    store::{Acquire, AcquireAnswer},
};
use leasehold_watchdog::{HeldLease, Renewing, Share};

use crate::{
    cohort::{Answer, Cohort, Env, Joined, Lead, NoLease, Progress, Taken, Ticket},
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
pub(crate) struct InLine<'a> {
    engine: &'a Engine,
    name: &'a LockName,
    ticket: Ticket,
    /// The command of the first task.
    own: Option<Own<'a>>,
    /// Whether the task has heard that it has to wait.
    waits: bool,
    /// Whether the place is given up already.
    left: bool,
}

struct Own<'a> {
    sent_at: Instant,
    deadline: Instant,
    reply: Watched<'a, AcquireAnswer>,
}

/// What a task in line hears.
pub(crate) enum News {
    /// It has the lease, or gets none.
    Over(Result<NewLease, NoLease>),
    /// It has to wait: its command was no grant, or others ask for it. It hears this once.
    Waits,
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
    ) -> Result<Joined<InLine<'a>, NewLease>, NoLease> {
        self.listen();
        let entry = self.with_new(name, &request.metrics, |member, env| {
            let keeps = !request.keep_idle.is_zero();
            let keep = keeps.then(|| self.keep(&member.cohort, env.now, name, request.keep_idle));
            Ok(match member.cohort.join(env, request.terms, request.tries, keep)? {
                Joined::InLine(place) => Joined::InLine(place),
                Joined::Taken(taken) => {
                    let ticket = taken.offer.ticket;
                    Joined::Taken(self.lease(member, env, ticket, taken, request))
                }
            })
        });
        Ok(match entry.unwrap_or(Err(NoLease::Closed))? {
            Joined::InLine((ticket, lead)) => {
                let mut place =
                    InLine { engine: self, name, ticket, own: None, waits: false, left: false };
                place.own = lead.map(|lead| self.ask(name, request, lead));
                Joined::InLine(place)
            }
            Joined::Taken(lease) => Joined::Taken(lease),
        })
    }

    /// Sends the command of the first task, for all that come after it.
    // ADR 0001
    fn ask(&self, name: &LockName, request: &Request, lead: Lead) -> Own<'_> {
        let Lead { id, heartbeat, keeps, sent_at, begun } = lead;
        let deadline = sent_at + self.timing.command_deadline(request.terms.ttl);
        let command = Acquire {
            name: name.clone(),
            id,
            ttl: request.terms.ttl,
            acks: request.terms.acks,
            watermark: begun.max(self.watermarks.of(sent_at, name)),
            label: request.label.as_ref().unwrap_or(&self.label).clone(),
            keeps,
            wait: heartbeat,
        };
        Own { sent_at, deadline, reply: self.store.ask(sent_at, command, deadline) }
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
    /// The deadline of its own command, until that is answered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.own.as_ref().map(|own| own.deadline)
    }

    /// What the task hears next.
    pub(crate) async fn news(&mut self, request: &Request) -> News {
        // By hand: the cohort wakes the waker that it has of this task.
        poll_fn(|cx| {
            if let Poll::Ready(outcome) = self.poll_own(request, cx) {
                return Poll::Ready(News::Over(outcome));
            }
            if let Poll::Ready(outcome) = self.poll(request, cx.waker()) {
                return Poll::Ready(News::Over(outcome));
            }
            if self.own.is_none() && !std::mem::replace(&mut self.waits, true) {
                return Poll::Ready(News::Waits);
            }
            Poll::Pending
        })
        .await
    }

    fn poll_own(&mut self, request: &Request, cx: &mut Context<'_>) -> Progress<NewLease> {
        let Some(Own { sent_at, reply, .. }) = &mut self.own else { return Poll::Pending };
        let (sent_at, reply) = (*sent_at, ready!(Pin::new(reply).poll(cx)));
        self.own = None;
        self.on_first_reply(request, sent_at, reply)
    }

    fn on_first_reply(
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

    fn poll(&mut self, request: &Request, waker: &Waker) -> Progress<NewLease> {
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
