use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, RuntimeLabel, Terms, Ttl,
    lease::LossReason,
    metric::{ClassMetrics, WakeSource},
    store::{Acquire, AcquireAnswer, StoreFuture},
};
use leasehold_watchdog::{HeldLease, Renewing, Share};

use crate::{
    engine::{Engine, NameEntry},
    owner::Caller,
    queue::{
        Env, Joined, Keep, Lead, LeasePoll, NameState, NoLease, TakenToken, Ticket, TimedAnswer,
    },
};

/// What a call asks for.
#[derive(Debug)]
pub(crate) struct LeaseRequest {
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

/// The place of a task among those of its process; dropping it gives the place up.
pub(super) struct InLine<'a> {
    engine: &'a Engine,
    name: &'a LockName,
    request: &'a LeaseRequest,
    ticket: Ticket,
    /// The command of the first task, until it is answered.
    own: Option<FirstCommand<'a>>,
    /// Whether the task has heard that it has to wait.
    waits: bool,
    /// Whether the place is given up already.
    left: bool,
}

struct FirstCommand<'a> {
    sent_at: Instant,
    deadline: Instant,
    reply: StoreFuture<'a, AcquireAnswer>,
}

/// A lease that a task has taken under the lock of its name, and that is not counted yet.
pub(super) struct NewLease {
    lease: Arc<HeldLease>,
    is_watched: bool,
    woken: Option<(WakeSource, Duration)>,
}

impl<'a> InLine<'a> {
    /// See [`NameState::join`]; `Closed` after the end.
    pub(super) fn join(
        engine: &'a Engine,
        name: &'a LockName,
        request: &'a LeaseRequest,
    ) -> Result<Joined<Self, NewLease>, NoLease> {
        engine.listen();
        let LeaseRequest { terms, tries, keep_idle, .. } = *request;
        let joined = engine.with_new(name, &request.metrics, |entry, env| {
            let keep = (!keep_idle.is_zero()).then(|| {
                // Nobody wanted an idle turn: that spares a look at the watermarks.
                let is_worth_it = entry.state.is_idle()
                    || (env.rules.keeps)(engine.watermarks.is_worth_keeping(env.now, name));
                Keep { idle: keep_idle, is_worth_it }
            });
            Ok(match entry.state.join(env, terms, tries, keep)? {
                Joined::InLine(place) => Joined::InLine(place),
                Joined::Taken(taken) => {
                    let ticket = taken.offer.ticket;
                    Joined::Taken(NewLease::of(engine, entry, env, request, (ticket, taken)))
                }
            })
        });
        Ok(match joined.unwrap_or(Err(NoLease::Closed))? {
            Joined::InLine((ticket, lead)) => {
                let (waits, left) = (false, false);
                let mut line = Self { engine, name, request, ticket, own: None, waits, left };
                line.own = lead.map(|lead| line.ask(lead));
                Joined::InLine(line)
            }
            Joined::Taken(lease) => Joined::Taken(lease),
        })
    }

    /// Sends the command of the first task, for all that come after it.
    // ADR 0001
    fn ask(&self, lead: Lead) -> FirstCommand<'a> {
        let Self { engine, name, request, .. } = *self;
        let Lead { id, heartbeat, keeps, sent_at, begun } = lead;
        let Terms { ttl, acks } = request.terms;
        let deadline = sent_at + engine.timing.command_deadline(ttl);
        let watermark = begun.max(engine.watermarks.of(sent_at, name));
        let (name, label) = (name.clone(), request.label.as_ref().unwrap_or(&engine.label).clone());
        let command = Acquire { name, id, ttl, acks, watermark, label, keeps, wait: heartbeat };
        let reply = Box::pin(engine.store.ask(sent_at, command, deadline));
        FirstCommand { sent_at, deadline, reply }
    }

    /// The deadline of its own command, until that is answered.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.own.as_ref().map(|own| own.deadline)
    }

    /// Waits for the lease; `None`, once, when the task has to wait: its command was not granted, or
    /// others ask for it.
    pub(super) async fn news(&mut self) -> Option<Result<NewLease, NoLease>> {
        // By hand: the state of the name wakes the waker that it has of this task.
        poll_fn(|cx| {
            let mut lease = self.poll_own(cx);
            if lease.is_pending() {
                lease = self.poll(cx.waker());
            }
            match lease {
                Poll::Ready(lease) => {
                    self.left = lease.is_ok();
                    Poll::Ready(Some(lease))
                }
                Poll::Pending if self.own.is_none() && !mem::replace(&mut self.waits, true) => {
                    Poll::Ready(None)
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    fn poll_own(&mut self, cx: &mut Context<'_>) -> LeasePoll<NewLease> {
        let Some(FirstCommand { sent_at, reply, .. }) = &mut self.own else { return Poll::Pending };
        let (sent_at, result) = (*sent_at, ready!(Pin::new(reply).poll(cx)));
        self.own = None;
        let Self { engine, name, request, ticket, .. } = *self;
        if let Ok(AcquireAnswer::Granted(granted)) = &result {
            engine.saw(sent_at, name, granted);
        }
        let answer = TimedAnswer { sent_at, result: engine.counted(result) };
        let lease = engine.with_new(name, &request.metrics, |entry, env| {
            let lease = entry.state.on_first_reply(env, ticket, request.tries, answer);
            lease.map_ok(|taken| NewLease::of(engine, entry, env, request, (ticket, taken)))
        });
        lease.unwrap_or(Poll::Pending)
    }

    fn poll(&self, waker: &Waker) -> LeasePoll<NewLease> {
        let Self { engine, name, request, ticket, .. } = *self;
        let lease = engine.with(name, |entry, env| {
            let lease = entry.state.poll(env, ticket, waker);
            lease.map_ok(|taken| NewLease::of(engine, entry, env, request, (ticket, taken)))
        });
        lease.unwrap_or(Poll::Ready(Err(NoLease::Dismissed)))
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&NameState, Ticket) -> T) -> Option<T> {
        self.engine.look(self.name, |state| look(state, self.ticket))
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if !self.left {
            self.engine.with(self.name, |entry, env| entry.state.leave(env, self.ticket));
        }
    }
}

impl NewLease {
    /// Turns a taken token into a watched lease. No await lies between: it cannot leak.
    fn of(
        engine: &Engine,
        entry: &mut NameEntry,
        env: &Env<'_>,
        request: &LeaseRequest,
        (ticket, taken): (Ticket, TakenToken),
    ) -> Self {
        let TakenToken { turn, token: fence, offer, until, watch, first } = taken;
        let number = if first { turn.id().number() } else { ticket };
        let renewing = renewing(request.renews, until.saturating_since(env.now), turn.ttl());
        let LeaseRequest { max_hold, min_hold, .. } = *request;
        let share = Share { turn, number, fence, until, renewing, max_hold, min_hold };
        let metrics = Arc::clone(&request.metrics);
        entry.holder = request.caller;
        let (lease, watch) = engine.watches.take(watch, &share, env.now, metrics);
        if let Some(watch) = watch {
            entry.state.on_watch(watch);
        }
        let woken = offer.source.map(|source| (source, env.now.saturating_since(offer.at)));
        Self { lease, is_watched: watch.is_some(), woken }
    }

    /// Whether another had the lock before; unknown if the grant came as an answer.
    pub(super) fn was_held(&self) -> bool {
        matches!(self.woken, Some((WakeSource::Local | WakeSource::Push, _)))
    }

    pub(super) fn count(self, metrics: &ClassMetrics) -> Arc<HeldLease> {
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
