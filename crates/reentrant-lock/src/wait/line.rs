use std::{
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use futures_util::future::BoxFuture;
use leasehold_core::{
    Instant, LockName, RuntimeLabel, Terms,
    metric::{ClassMetrics, WakeSource},
    store::{Acquire, AcquireAnswer},
};
use leasehold_watchdog::{HeldLease, Renewing, Share};

use crate::{
    engine::{Engine, NameEntry},
    owner::{Caller, Owner},
    queue::{
        Env, Joined, Keep, Lead, LeasePoll, NameState, NoLease, TakenToken, Ticket, TimedAnswer,
    },
};

/// For how long to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitLimit {
    /// Not at all: the call returns as soon as it knows that the lock is taken.
    Try,
    /// For a while.
    For(Duration),
    /// Without a limit.
    Forever,
}

/// One call to acquire a lock, with its options checked.
#[derive(Debug)]
pub(crate) struct AcquireCall {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: LockName,
    pub(crate) metrics: Arc<ClassMetrics>,
    pub(crate) terms: Terms,
    pub(crate) limit: WaitLimit,
    /// Whether the call does not wait for a taken lock. `false` also after the first attempt of a try, if that
    /// found a lock that may be idle.
    pub(crate) tries: bool,
    pub(crate) outage_patience: Duration,
    /// After what time the call is reported if it still waits.
    pub(crate) blocked_after: Duration,
    pub(crate) renews: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) min_hold: Option<Duration>,
    /// For how long the lock stays with the runtime when it is idle; zero for not at all.
    pub(crate) keep_idle: Duration,
    /// What others see as the holder; `None` for the runtime's label.
    pub(crate) label: Option<RuntimeLabel>,
    /// Who holds the lease: the owner of the call, or all readers of this runtime.
    pub(crate) owner: Option<Owner>,
    /// The owner of the call.
    pub(crate) by: Option<Owner>,
    pub(crate) caller: Caller,
    /// When it was polled first.
    pub(crate) started: Instant,
    /// Until when a try waits for another runtime to give up the lock, which may be idle there.
    pub(crate) recall_ends: Option<Instant>,
}

/// The position of a task in the local queue. Dropping it takes the task out of the queue.
pub(super) struct InLine<'a> {
    call: &'a AcquireCall,
    ticket: Ticket,
    /// The command of the first task, until it is answered.
    own: Option<FirstCommand<'a>>,
    /// Whether the task has heard that it has to wait.
    waits: bool,
    /// Whether the task is out of the queue, because it has its lease: then `drop` does nothing.
    left: bool,
}

struct FirstCommand<'a> {
    deadline: Instant,
    answer: BoxFuture<'a, TimedAnswer<AcquireAnswer>>,
}

impl AcquireCall {
    /// Joins the queue, see [`NameState::join`]. Fails with `Closed` after the runtime has ended.
    pub(super) fn join(&self) -> Result<Joined<NewLease>, NoLease> {
        let Self { engine, name, metrics, terms, tries, keep_idle, .. } = self;
        engine.listen();
        let joined = engine.with_new(name, terms.mode, metrics, |entry, env| {
            let keep = (!keep_idle.is_zero()).then(|| {
                // If the turn is idle, no other runtime wanted the lock: that spares a look at the watermarks.
                let is_worth_it = entry.state.is_idle()
                    || (env.rules.keeps)(engine.watermarks.is_worth_keeping(env.now, name));
                Keep { idle: *keep_idle, is_worth_it }
            });
            Ok(match entry.state.join(env, *terms, *tries, keep)? {
                Joined::Taken(taken) => Joined::Taken(NewLease::of(self, entry, env, taken)),
                Joined::InLine(ticket, lead) => Joined::InLine(ticket, lead),
            })
        });
        joined.unwrap_or(Err(NoLease::Closed))
    }
}

impl<'a> InLine<'a> {
    /// A task that has joined sends the command that it leads with, if it does.
    pub(super) fn new(call: &'a AcquireCall, ticket: Ticket, lead: Option<Lead>) -> Self {
        let own = lead.map(|lead| FirstCommand::send(call, lead));
        Self { call, ticket, own, waits: false, left: false }
    }

    /// The deadline of its own command, until that is answered.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.own.as_ref().map(|own| own.deadline)
    }

    /// Waits for the lease. Returns `None` once, to say that the task has to wait: its own command brought no
    /// lease, or it has no command, because others ask.
    pub(super) async fn news(&mut self) -> Option<Result<NewLease, NoLease>> {
        // A hand-written poll, because the `NameState` keeps the waker of the task, and wakes it.
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
        let Some(own) = &mut self.own else { return Poll::Pending };
        let answer = ready!(own.answer.as_mut().poll(cx));
        self.own = None;
        let Self { call, ticket, .. } = *self;
        let AcquireCall { engine, name, metrics, terms, tries, .. } = call;
        let lease = engine.with_new(name, terms.mode, metrics, |entry, env| {
            let lease = entry.state.on_first_reply(env, ticket, *tries, answer);
            lease.map_ok(|taken| NewLease::of(call, entry, env, taken))
        });
        lease.unwrap_or(Poll::Pending)
    }

    fn poll(&self, waker: &Waker) -> LeasePoll<NewLease> {
        let Self { call, ticket, .. } = *self;
        let lease = call.engine.with(&call.name, call.terms.mode, |entry, env| {
            let lease = entry.state.poll(env, ticket, waker);
            lease.map_ok(|taken| NewLease::of(call, entry, env, taken))
        });
        lease.unwrap_or(Poll::Ready(Err(NoLease::Dismissed)))
    }

    pub(super) fn look<T>(&self, look: impl FnOnce(&NameState, Ticket) -> T) -> Option<T> {
        self.call.look(|state| look(state, self.ticket))
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if !self.left {
            let Self { call, ticket, .. } = self;
            let mode = call.terms.mode;
            call.engine.with(&call.name, mode, |entry, env| entry.state.leave(env, *ticket));
        }
    }
}

impl<'a> FirstCommand<'a> {
    /// Sends the command of the first task, for all that come after it.
    // ADR 0001
    fn send(call: &'a AcquireCall, lead: Lead) -> Self {
        let Lead { id, heartbeat, keeps, sent_at, begun } = lead;
        let AcquireCall { engine, name, label, terms: Terms { ttl, acks, mode }, .. } = call;
        let deadline = sent_at + engine.timing.command_deadline(*ttl);
        let command = Acquire {
            name: name.clone(),
            id,
            mode: *mode,
            ttl: *ttl,
            acks: *acks,
            watermark: begun.max(engine.watermarks.of(sent_at, name)),
            label: label.as_ref().unwrap_or(&engine.label).clone(),
            keeps,
            wait: heartbeat,
        };
        let reply = engine.store.ask(sent_at, command, deadline);
        let answer = Box::pin(async move {
            let result = reply.await;
            if let Ok(AcquireAnswer::Granted(granted)) = &result {
                engine.saw(sent_at, name, granted);
            }
            TimedAnswer { sent_at, result }
        });
        Self { deadline, answer }
    }
}

/// A lease that a task has taken under the lock of its name, and that is not in the metrics yet.
pub(super) struct NewLease {
    pub(super) lease: Arc<HeldLease>,
    pub(super) is_watched: bool,
    pub(super) woken: Option<(WakeSource, Duration)>,
}

impl NewLease {
    /// Turns a taken token into a watched lease. No await lies between taking the token and making the lease, so a
    /// cancelled call cannot lose it.
    fn of(call: &AcquireCall, entry: &mut NameEntry, env: &Env<'_>, taken: TakenToken) -> Self {
        let TakenToken { turn, number, fence, until, watch, woken } = taken;
        let AcquireCall { engine, metrics, owner, caller, renews, max_hold, min_hold, .. } = call;
        // A lease without renewal is renewed once if less than 90 % of its ttl is left.
        let is_short = until.saturating_since(env.now) < turn.ttl().get().mul_f64(0.9);
        let renewing = match renews {
            true => Renewing::Always,
            false if is_short => Renewing::Once,
            false => Renewing::Never,
        };
        let (max_hold, min_hold) = (*max_hold, *min_hold);
        let share = Share { turn, number, fence, until, renewing, max_hold, min_hold };
        entry.holder = Some(*caller);
        entry.owner = owner.as_ref().map(Owner::downgrade);
        let (lease, watch) = engine.watches.take(watch, share, env.now, Arc::clone(metrics));
        if let Some(watch) = watch {
            entry.state.on_watch(watch);
        }
        Self { lease, is_watched: watch.is_some(), woken }
    }

    /// Whether another had the lock before; `false` also when the grant came as an answer to a command: then it is
    /// unknown.
    pub(super) fn was_held(&self) -> bool {
        matches!(self.woken, Some((WakeSource::Local | WakeSource::Push, _)))
    }
}
