use std::{
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use leasehold_core::{
    Instant, Sleep, StoreError, StoreErrorKind,
    lease::LossReason,
    store::{Hold, HoldAnswer, Next, Release, ReleaseAnswer, StoreFuture, Withdraw},
};
use leasehold_watchdog::{HeldLease, Key};
use tokio::{select, sync::SemaphorePermit};

use crate::{
    durations::MOMENT,
    queue::{NextPlace, NextTurn, TimedAnswer, TurnId, unheard},
    timing::closed_for,
};

use super::{
    core::Engine,
    delivery::{Delivery, DeliveryKind, Sender},
    late::LateSender,
    outbox::warn_of,
    repeat_rules::{DeliveryEnd, NextStep, RepeatRules},
};

/// Sends a command again and again until it is answered. If it is dropped before, for example by a tokio
/// runtime that stops, the command counts as unconfirmed.
#[derive(Debug)]
// ADR 0003
pub(super) struct Sending {
    engine: Arc<Engine>,
    delivery: Delivery,
    key: Key,
    /// How it ended; `None` before that.
    end: Option<DeliveryEnd>,
    /// Whether a withdrawal that is not confirmed goes on in the backlog.
    is_late: bool,
}

/// One copy of the command in flight.
struct SentCopy<'a> {
    sent_at: Instant,
    deadline: Instant,
    /// The reply to come, in the form of one to a release, so that one loop sends all commands.
    reply: StoreFuture<'a, ReleaseAnswer>,
}

impl SentCopy<'_> {
    fn given_up_at(&self) -> Instant {
        self.deadline + MOMENT
    }
}

impl Sending {
    /// From now on the command counts as pending; `None` when too many are.
    fn new(engine: &Arc<Engine>, delivery: Delivery) -> Option<Self> {
        let Some(key) = engine.outbox.add(&delivery) else {
            delivery.count(DeliveryEnd::Unconfirmed);
            return None;
        };
        Some(Self { engine: Arc::clone(engine), delivery, key, end: None, is_late: false })
    }

    /// A withdrawal from the backlog, for one more ttl.
    pub(super) fn again(engine: &Arc<Engine>, key: Key, mut delivery: Delivery) -> Self {
        delivery.expires = engine.clock.now() + delivery.ttl.get();
        Self { engine: Arc::clone(engine), delivery, key, end: None, is_late: false }
    }

    /// Sends until the command is answered or has expired; dropping the future gives it up.
    pub(super) async fn run(mut self) -> Result<DeliveryEnd, StoreError> {
        let (end, failure) = self.send().await;
        self.end = Some(end);
        let may_come = failure.as_ref().is_none_or(|error| error.kind().is_transient());
        self.is_late = may_come && self.delivery.is_withdrawal();
        drop(self);
        match end {
            DeliveryEnd::Unconfirmed => Err(failure.unwrap_or_else(unheard)),
            end => Ok(end),
        }
    }

    async fn send(&self) -> (DeliveryEnd, Option<StoreError>) {
        let Self { engine, delivery, .. } = self;
        let mut now = engine.clock.now();
        let mut rules = RepeatRules::new(now, delivery.expires, delivery.belief());
        let mut copies = Vec::new();
        let (mut permit, mut next, mut failure) = (None, None, None);
        loop {
            match rules.next(now) {
                NextStep::Done(end) => return (end, failure),
                NextStep::Send => {
                    let is_first = rules.is_unsent();
                    if copies.is_empty() && !delivery.is_awaited(is_first) {
                        permit = self.permit(now).await;
                        now = engine.clock.now();
                        if now >= delivery.expires {
                            continue;
                        }
                    }
                    let Ok(place) = self.next_place(is_first) else {
                        rules.on_next_turn();
                        continue;
                    };
                    next = place;
                    let keep = closed_for(delivery.closed_until(), now);
                    // If a place depends on it, another copy follows whether or not this one is
                    // answered, as a heartbeat would.
                    let pause = |next: NextPlace| engine.timing.heartbeat_pause(next.terms.ttl);
                    rules.on_send(now, keep, next.map(|next| now + pause(next)));
                    copies.push(self.copy(keep, next, now));
                }
                NextStep::Wait(until) => {
                    let answer = self.wait(&mut copies, &mut rules, next.is_some(), until).await;
                    now = engine.clock.now();
                    let Some(answer) = answer else { continue };
                    permit = permit.filter(|_| !copies.is_empty());
                    let error = answer.result.as_ref().err();
                    let jitter = error.map_or(0.0, |_| engine.entropy.fraction());
                    failure = error.cloned().or(failure);
                    rules.on_reply(now, jitter, &answer.result);
                    if !self.on_reply(answer) {
                        rules.on_next_turn();
                    }
                }
            }
        }
    }

    /// Waits for the answer to a copy, or its failure; `None` at `until`, or when another copy is due.
    async fn wait(
        &self,
        copies: &mut Vec<SentCopy<'_>>,
        rules: &mut RepeatRules,
        has_place: bool,
        until: Option<Instant>,
    ) -> Option<TimedAnswer<ReleaseAnswer>> {
        let clock = &self.engine.clock;
        let mut timer = until.map(|at| clock.sleep_until(at));
        let mut is_first_poll = true;
        // By hand: the state of the name keeps this waker, and wakes it when another copy is to be sent. A
        // release that is answered in time sets no timer.
        poll_fn(|cx| {
            let is_first_poll = mem::take(&mut is_first_poll);
            let answered = copies.iter_mut().enumerate().find_map(|(at, copy)| {
                let result = match copy.reply.as_mut().poll(cx) {
                    Poll::Ready(result) => result,
                    Poll::Pending if !is_first_poll && clock.now() >= copy.given_up_at() => {
                        Err(unheard())
                    }
                    Poll::Pending => return None,
                };
                Some((at, TimedAnswer { sent_at: copy.sent_at, result }))
            });
            if let Some((at, answer)) = answered {
                copies.swap_remove(at);
                return Poll::Ready(Some(answer));
            }
            let may_be_wanted = match self.delivery.kind {
                DeliveryKind::Release { .. } => has_place,
                DeliveryKind::Withdraw => copies.is_empty(),
                DeliveryKind::Hold { .. } => false,
            };
            if may_be_wanted && self.is_copy_wanted(cx.waker()) {
                rules.on_copy_due(clock.now());
                return Poll::Ready(None);
            }
            // As a rule the store answers by its deadline, so a timer is set only if a poll came
            // without an answer.
            if !is_first_poll && timer.is_none() {
                let given_up_at = copies.iter().map(SentCopy::given_up_at).min();
                timer = given_up_at.map(|at| clock.sleep_until(at));
            }
            match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(None),
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Whether a place that is queued, or a call that waits for the withdrawal, needs another copy
    /// at once; otherwise `waker` is woken when it does.
    fn is_copy_wanted(&self, waker: &Waker) -> bool {
        let Delivery { name, id, .. } = &self.delivery;
        let wanted = self.engine.with(name, |entry, _| match self.delivery.turn() {
            Some(turn) => entry.state.has_lost_messages(turn, waker),
            None => entry.state.withdrawals.is_wanted(*id, waker),
        });
        wanted.unwrap_or(false)
    }

    /// Counts the answer, and passes it to the state of the name; `false` when the next turn has
    /// begun.
    fn on_reply(&self, answer: TimedAnswer<ReleaseAnswer>) -> bool {
        let Self { engine, delivery, key, .. } = self;
        if let Err(error) = &answer.result {
            engine.metrics.store().error(error.kind());
            engine.outbox.attempt_failed(*key, error);
            // It has not run: nobody learns more by waiting for it.
            let has_not_run = error.is_answer() || error.kind() == StoreErrorKind::Definite;
            if has_not_run && delivery.is_withdrawal() {
                engine.with(&delivery.name, |entry, env| {
                    entry.state.withdrawals.on_refusal(&mut env.effects.wake, error);
                });
            }
        }
        let is_answered =
            answer.result.as_ref().map_or_else(|error| !error.kind().is_transient(), |_| true);
        let Some(turn) = delivery.turn() else { return true };
        if let Ok(ReleaseAnswer::NextGranted(granted)) = &answer.result {
            engine.saw(answer.sent_at, &delivery.name, granted);
        }
        let repeats = engine
            .with(&delivery.name, |entry, env| entry.state.on_release_reply(env, turn, answer));
        repeats.unwrap_or(true) || is_answered
    }

    /// The place that is queued with the next copy, chosen with the first one.
    fn next_place(&self, is_first: bool) -> Result<Option<NextPlace>, NextTurn> {
        match self.delivery.kind {
            DeliveryKind::Release { sender: Some(Sender::Holder(_)), .. } if is_first => Ok(None),
            _ => {
                let Some(turn) = self.delivery.turn() else { return Ok(None) };
                let place = self
                    .engine
                    .with(&self.delivery.name, |entry, env| entry.state.on_release_send(env, turn));
                place.unwrap_or(Ok(None))
            }
        }
    }

    fn copy(&self, keep: Option<Duration>, next: Option<NextPlace>, now: Instant) -> SentCopy<'_> {
        let (engine, delivery) = (&*self.engine, &self.delivery);
        let (store, name, id) = (&engine.store, delivery.name.clone(), delivery.id);
        let timeout = match next {
            Some(next) => engine.place_deadline(next.terms.ttl),
            None => engine.timing.command_deadline(delivery.ttl),
        };
        let deadline = delivery.expires.min(now + timeout);
        let reply: StoreFuture<'_, _> = match &delivery.kind {
            DeliveryKind::Release { fence, .. } => {
                let next = next.map(|next| Next {
                    id: next.id,
                    ttl: next.terms.ttl,
                    watermark: engine.watermarks.of(now, &name).max(Some(*fence)),
                    label: engine.label.clone(),
                    keeps: next.keeps,
                    heartbeat: next.heartbeat,
                });
                let release = Release { name, id, fence: *fence, keep, next };
                Box::pin(store.ask(now, release, deadline))
            }
            DeliveryKind::Withdraw => Box::pin(async move {
                let answer = store.ask(now, Withdraw { name, id }, deadline).await?;
                Ok(if answer.ended_grant { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
            }),
            DeliveryKind::Hold { lease, update } => {
                let (turn, update, ttl) = (lease.turn(), *update, delivery.ttl);
                let (fence, acks) = (turn.first(), turn.terms().acks);
                let hold = Hold { name, id, fence, update, ttl, acks };
                Box::pin(async move {
                    match store.ask(now, hold, deadline).await? {
                        HoldAnswer::Held { remaining } => {
                            let _ = lease.extended(now, remaining);
                            Ok(ReleaseAnswer::Released)
                        }
                        HoldAnswer::Gone => Ok(lost(engine, lease, LossReason::Gone)),
                        HoldAnswer::DataLost => Ok(lost(engine, lease, LossReason::DataLost)),
                    }
                })
            }
        };
        SentCopy { sent_at: now, deadline, reply }
    }

    /// Bounds the commands that no task waits for; a further one waits a claim window at most. A
    /// withdrawal goes at once when a call waits for it.
    async fn permit(&self, now: Instant) -> Option<SemaphorePermit<'_>> {
        let Engine { clock, entropy, timing, outbox, .. } = &*self.engine;
        let left = self.delivery.expires.saturating_since(now) / 2;
        // Those that begin together are not to be sent together in the end.
        let patience = timing.claim_window(self.delivery.ttl).min(left);
        let patience = patience.mul_f64(1.0 - entropy.fraction() / 2.0);
        let is_withdrawal = self.delivery.is_withdrawal();
        // By hand: the call that wants it wakes the waker that the state has of this task.
        let wanted = poll_fn(|cx| {
            let is_wanted = is_withdrawal && self.is_copy_wanted(cx.waker());
            if is_wanted { Poll::Ready(()) } else { Poll::Pending }
        });
        select! {
            biased;
            permit = outbox.background.acquire() => permit.ok(),
            () = wanted => None,
            () = clock.sleep_until(now + patience) => None,
        }
    }
}

/// The server does not have the lease whose holds were to be changed.
fn lost(engine: &Engine, lease: &HeldLease, reason: LossReason) -> ReleaseAnswer {
    let _ = lease.lose(reason);
    engine.on_lost(lease.turn(), reason, None);
    ReleaseAnswer::Gone
}

impl Drop for Sending {
    fn drop(&mut self) {
        let Self { engine, delivery, key, .. } = self;
        let name = &delivery.name;
        let end = self.end.unwrap_or(DeliveryEnd::Unconfirmed);
        if end == DeliveryEnd::Unconfirmed
            && let Some(turn) = delivery.turn()
        {
            // Without effect when the server has refused, which the state knows.
            engine.with(name, |entry, env| entry.state.on_release_given_up(env, turn));
        }
        if self.is_late
            && end == DeliveryEnd::Unconfirmed
            && LateSender::postpone(engine, *key, delivery)
        {
            return;
        }
        if delivery.is_withdrawal() {
            engine.on_withdrawn(delivery);
        }
        delivery.count(end);
        // Last: what follows from the end is pending by now.
        if self.end.is_some() || delivery.closes().is_none() {
            return engine.outbox.done(*key, end);
        }
        let left = engine.outbox.left(*key, name);
        // What is in the memory of this process ends with it.
        if !engine.ending.refuses() && !engine.store.ends_with_process() {
            warn_of(&left);
        }
    }
}

/// A command in the hands of the task that waits for its answer. Dropped before it is answered, as
/// with a cancelled future, it goes on in the runtime from where it stands.
///
/// It counts as pending. Never drop it inside of a lock of the engine.
#[must_use = "dropped at once, it goes on in the runtime"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    key: Key,
    /// The lease whose turn ends with it, and whose holder waits for the answer.
    attended: Option<Arc<HeldLease>>,
    sending: Option<SendingFuture>,
}

type SendingFuture = Pin<Box<dyn Future<Output = Result<DeliveryEnd, StoreError>> + Send>>;

impl Cleanup {
    /// Makes a command ready; `None` when too many are pending.
    pub(super) fn new(
        engine: &Engine,
        delivery: Delivery,
        attended: Option<Arc<HeldLease>>,
    ) -> Option<Self> {
        let engine = engine.me.upgrade()?;
        let sending = Sending::new(&engine, delivery)?;
        let key = sending.key;
        Some(Self { engine, key, attended, sending: Some(Box::pin(sending.run())) })
    }

    /// Waits until the command is done, and until `until` at most; then it goes on in the runtime.
    ///
    /// `is_enough`: a failed first attempt also ends the wait. `is_its_deadline`: `until` is that
    /// of the first attempt, which fails by itself then, so that no timer is set before.
    pub(crate) async fn wait(
        mut self,
        until: Instant,
        mut is_its_deadline: bool,
        is_enough: bool,
    ) -> Result<DeliveryEnd, StoreError> {
        let (mut timer, mut is_first_poll) = (None::<Sleep>, true);
        // By hand: a release that is answered in time sets no timer.
        poll_fn(move |cx| {
            // It is first polled where it was made.
            if !mem::take(&mut is_first_poll)
                && let Err(error) = self.engine.check_process()
            {
                return Poll::Ready(Err(error));
            }
            let Some(sending) = &mut self.sending else { return Poll::Ready(Err(unheard())) };
            if let Poll::Ready(end) = sending.as_mut().poll(cx) {
                self.sending = None;
                return Poll::Ready(end);
            }
            let outbox = &self.engine.outbox;
            if is_enough && let Some(failure) = outbox.failure(self.key) {
                return Poll::Ready(Err(failure));
            }
            // The first attempt has a deadline of its own: as a rule no timer is needed.
            if mem::take(&mut is_its_deadline) {
                return Poll::Pending;
            }
            let clock = &self.engine.clock;
            let timer = timer.get_or_insert_with(|| clock.sleep_until(until));
            if timer.as_mut().poll(cx).is_pending() && clock.now() < until {
                return Poll::Pending;
            }
            Poll::Ready(Err(outbox.failure(self.key).unwrap_or_else(unheard)))
        })
        .await
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(sending) = self.sending.take() else { return };
        if self.engine.is_forked() {
            return mem::forget(sending);
        }
        if let Some(lease) = &self.attended {
            let turn = TurnId::of(lease.turn());
            self.engine.with(lease.name(), |entry, _| entry.state.on_release_left(turn));
        }
        self.engine.spawn(async move { drop(sending.await) });
    }
}
