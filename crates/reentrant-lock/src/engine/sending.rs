use std::{
    mem,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::{BoxFuture, select_all};
use leasehold_core::{
    Clock, Instant, StoreError, StoreErrorKind, backoff,
    lease::LossReason,
    sleep_until_some,
    store::{Hold, HoldAnswer, Next, Release, ReleaseAnswer, Withdraw},
};
use leasehold_watchdog::HeldLease;
use tokio::{
    select,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use crate::{
    durations::{LATE, PLACE_PAUSE},
    queue::{NextPlace, TimedAnswer, unheard},
    timing::closed_for,
};

use super::{
    core::Engine,
    delivery::{Delivery, DeliveryEnd, DeliveryKind, NextStep, RepeatRules},
    outbox::DeliveryKey,
};

/// A command in the hands of the task that waits for its answer. Dropped before it is answered, as
/// with a cancelled future, it goes on in the runtime from where it stands.
///
/// It counts as pending. Never drop it inside of a lock of the engine.
#[must_use = "dropped at once, it goes on in the runtime"]
pub(crate) struct Cleanup {
    /// `None` once it is over, or goes on in the runtime.
    sending: Option<Box<Sending>>,
}

impl Cleanup {
    /// Makes a command pending; `None` when too many are.
    pub(super) fn new(engine: &Engine, delivery: Delivery) -> Option<Self> {
        let engine = engine.me.upgrade()?;
        let Some(key) = engine.outbox.add(&delivery) else {
            delivery.count(DeliveryEnd::Unconfirmed);
            return None;
        };
        let rules = RepeatRules::new(engine.clock.now(), delivery.expires, delivery.belief);
        let sending = Sending {
            engine,
            delivery: Arc::new(delivery),
            key,
            rules,
            copies: Vec::new(),
            permit: None,
            next: None,
            failure: None,
        };
        Some(Self { sending: Some(Box::new(sending)) })
    }

    /// Waits until the command is done: until `until` at most, and once a copy has failed no longer than the
    /// first copy may take. Otherwise it goes on in the runtime. What is not confirmed is an error here, and
    /// never [`DeliveryEnd::Unconfirmed`].
    ///
    /// `is_enough`: a copy that failed also ends the wait.
    pub(crate) async fn wait(
        mut self,
        until: Option<Instant>,
        is_enough: bool,
    ) -> Result<DeliveryEnd, StoreError> {
        let Some(sending) = &mut self.sending else { return Err(unheard()) };
        let engine = Arc::clone(&sending.engine);
        let deadline = engine.timing.command_deadline(sending.delivery.ttl);
        let by = engine.clock.now() + deadline;
        let until = until.filter(|until| *until < by);
        loop {
            // The store answers the first copy by its deadline: that needs no timer here.
            let limit = until.or_else(|| sending.failure.is_some().then_some(by));
            select! {
                biased;
                error = engine.until_forked() => return Err(error),
                () = sending.step() => {}
                () = sleep_until_some(&*engine.clock, limit) => break,
            }
            match sending.rules.end() {
                Some(DeliveryEnd::Unconfirmed) => break,
                Some(end) => return Ok(end),
                None if is_enough && sending.failure.is_some() => break,
                None => {}
            }
        }
        Err(sending.failure.clone().unwrap_or_else(unheard))
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(sending) = self.sending.take().filter(|sending| sending.rules.end().is_none())
        else {
            return;
        };
        let engine = Arc::clone(&sending.engine);
        if engine.is_forked() {
            return mem::forget(sending);
        }
        let Delivery { name, mode, turn, belief, .. } = &*sending.delivery;
        if let Some(turn) = turn.filter(|_| belief.is_some()) {
            engine.with(name, *mode, |entry, _| entry.state.on_release_left(turn));
        }
        engine.spawn(sending.run());
    }
}

/// A command that is sent again and again until it is answered. If it is dropped before, for example by
/// a tokio runtime that stops, the command counts as unconfirmed.
// ADR 0003
struct Sending {
    engine: Arc<Engine>,
    delivery: Arc<Delivery>,
    key: DeliveryKey,
    rules: RepeatRules,
    /// The copies in flight.
    copies: Vec<CopyFuture>,
    /// Of the copies in flight, if no task waits for them.
    permit: Option<OwnedSemaphorePermit>,
    /// The place that the last copy queues.
    next: Option<NextPlace>,
    /// Why the last copy failed that did.
    failure: Option<StoreError>,
}

type CopyFuture = BoxFuture<'static, TimedAnswer<ReleaseAnswer>>;

impl Sending {
    /// Sends until the command is answered or has expired; dropping the future gives it up.
    async fn run(mut self: Box<Self>) {
        while self.rules.end().is_none() {
            self.step().await;
        }
    }

    /// Sends a copy if one is due, and waits for an answer or for the time of the next copy. Dropping the
    /// future loses nothing: the next call goes on.
    async fn step(&mut self) {
        let mut now = self.engine.clock.now();
        if self.rules.next(now) == NextStep::Send {
            now = self.send(now).await;
        }
        let NextStep::Wait(due) = self.rules.next(now) else { return };
        let may_hurry = match self.delivery.kind {
            DeliveryKind::Release(_) => self.next.is_some(),
            DeliveryKind::Withdraw => self.copies.is_empty(),
            DeliveryKind::Hold { .. } => false,
        };
        select! {
            biased;
            Some(answer) = next_answer(&mut self.copies) => self.on_reply(answer),
            () = self.delivery.hurry.notified(), if may_hurry => {
                self.rules.on_copy_due(self.engine.clock.now());
            }
            () = sleep_until_some(&*self.engine.clock, due) => {}
        }
    }

    /// Sends a copy, unless the next turn has begun, and returns the time.
    async fn send(&mut self, mut now: Instant) -> Instant {
        let is_first = self.rules.is_unsent();
        if self.copies.is_empty() && !self.delivery.is_awaited(is_first) {
            self.permit = permit(&self.engine, &self.delivery, now).await;
            now = self.engine.clock.now();
            if now >= self.delivery.expires {
                return now;
            }
        }
        let Self { engine, delivery, .. } = self;
        // The first copy of a holder queues no place.
        let turn = delivery.turn.filter(|_| delivery.belief.is_none() || !is_first);
        let place = turn.and_then(|turn| {
            engine.with(&delivery.name, delivery.mode, |entry, env| {
                entry.state.on_release_send(env, turn)
            })
        });
        let Ok(next) = place.unwrap_or(Ok(None)) else {
            self.rules.on_next_turn();
            return now;
        };
        let keep = closed_for(delivery.closed_until, now);
        // If a place depends on it, another copy follows whether or not this one is answered, as a
        // heartbeat would.
        let again = next.map(|next| now + engine.timing.heartbeat_pause(next.terms.ttl));
        let (engine, delivery) = (Arc::clone(engine), Arc::clone(delivery));
        self.copies.push(Box::pin(async move {
            let result = send_copy(&engine, &delivery, keep, next, now).await;
            TimedAnswer { sent_at: now, result }
        }));
        self.rules.on_send(now, keep, again);
        self.next = next;
        now
    }

    /// Passes the answer to the state of the name.
    fn on_reply(&mut self, answer: TimedAnswer<ReleaseAnswer>) {
        let Self { engine, delivery, rules, .. } = self;
        let granted = match &answer.result {
            Ok(ReleaseAnswer::NextGranted(granted)) => Some(granted.clone()),
            _ => None,
        };
        if let Some(granted) = &granted {
            engine.watermarks.saw(answer.sent_at, &delivery.name, granted.last);
        }
        let jitter = answer.result.as_ref().err().map(|_| engine.entropy.fraction());
        rules.on_reply(engine.clock.now(), jitter.unwrap_or_default(), &answer.result);
        if self.copies.is_empty() {
            self.permit = None;
        }
        if let Err(error) = &answer.result {
            self.failure = Some(error.clone());
            // It has not run: nobody learns more by waiting for it.
            let has_not_run = error.is_answer() || error.kind() == StoreErrorKind::Definite;
            if has_not_run && delivery.is_withdrawal() {
                engine.with(&delivery.name, delivery.mode, |entry, env| {
                    entry.state.withdrawals.on_refusal(&mut env.effects, error);
                });
            }
        }
        let is_transient = answer.result.as_ref().is_err_and(|error| error.kind().is_transient());
        let Some(turn) = delivery.turn else { return };
        let repeats = engine.with(&delivery.name, delivery.mode, |entry, env| {
            entry.state.on_release_reply(env, turn, answer)
        });
        if is_transient && repeats == Some(false) {
            rules.on_next_turn();
        }
        // Last: a subscriber may panic.
        if let Some(granted) = granted {
            engine.report_regression(&delivery.name, &granted);
        }
    }

    /// Makes a withdrawal a late one if the server may still execute what it withdraws; whether it did.
    fn becomes_late(&self) -> bool {
        let may_come = self.failure.as_ref().is_none_or(|error| error.kind().is_transient());
        let is_unheard = self.rules.end() == Some(DeliveryEnd::Unconfirmed) && may_come;
        is_unheard && self.delivery.is_withdrawal() && self.engine.outbox.becomes_late(self.key)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let Self { engine, delivery, key, .. } = &*self;
        let end = self.rules.end().unwrap_or(DeliveryEnd::Unconfirmed);
        if end == DeliveryEnd::Unconfirmed
            && let Some(turn) = delivery.turn
        {
            // Without effect when the server has refused, which the state knows.
            engine.with(&delivery.name, delivery.mode, |entry, env| {
                entry.state.on_release_given_up(env, turn);
            });
        }
        if self.becomes_late() {
            let (weak, clock) = (Arc::downgrade(engine), Arc::clone(&engine.clock));
            let (limit, delivery) = (Arc::clone(&engine.outbox.late), (**delivery).clone());
            let delivery = Delivery { expires: delivery.expires + LATE, ..delivery };
            return engine.spawn(send_late(weak, clock, limit, *key, delivery));
        }
        // The lock stays closed, unless the memory of this process holds it.
        let stays_closed = !engine.ending.refuses() && !engine.store.ends_with_process();
        if self.rules.end().is_none() && delivery.is_release() && stays_closed {
            engine.outbox.note_abandoned(&delivery.name);
        }
        // Last: what follows from the end is pending by now.
        finish(engine, delivery, *key, end);
    }
}

/// The next answer to one of the copies, which are few; `None` without any.
async fn next_answer(copies: &mut Vec<CopyFuture>) -> Option<TimedAnswer<ReleaseAnswer>> {
    let (answer, at) = match &mut copies[..] {
        [] => return None,
        // As a rule.
        [only] => (only.await, 0),
        several => {
            let (answer, at, _) = select_all(several).await;
            (answer, at)
        }
    };
    drop(copies.swap_remove(at));
    Some(answer)
}

/// Bounds the commands that no task waits for; a further one waits a claim window at most. A
/// withdrawal goes at once when a call waits for it.
async fn permit(
    engine: &Engine,
    delivery: &Delivery,
    now: Instant,
) -> Option<OwnedSemaphorePermit> {
    let Engine { clock, entropy, timing, outbox, .. } = engine;
    let left = delivery.expires.saturating_since(now) / 2;
    // Those that begin together are not to be sent together in the end.
    let patience = timing.claim_window(delivery.ttl).min(left);
    let patience = patience.mul_f64(1.0 - entropy.fraction() / 2.0);
    select! {
        biased;
        permit = Arc::clone(&outbox.background).acquire_owned() => permit.ok(),
        () = delivery.hurry.notified(), if delivery.is_withdrawal() => None,
        () = clock.sleep_until(now + patience) => None,
    }
}

/// A command is over, and pending no more.
fn finish(engine: &Engine, delivery: &Delivery, key: DeliveryKey, end: DeliveryEnd) {
    if delivery.is_withdrawal() {
        engine.with(&delivery.name, delivery.mode, |entry, env| {
            entry.state.withdrawals.on_end(&mut env.effects, delivery.id);
        });
    }
    delivery.count(end);
    engine.outbox.done(key, end);
}

/// Sends a withdrawal that the server has not answered within a ttl, for another hour. It does not
/// keep the engine alive.
///
/// A server that stands still may have an abandoned acquire in a buffer, and grants the lock when
/// it goes on.
// ADR 0005
async fn send_late(
    engine: Weak<Engine>,
    clock: Arc<dyn Clock>,
    limit: Arc<Semaphore>,
    key: DeliveryKey,
    delivery: Delivery,
) {
    let mut failures = 0;
    loop {
        // Also during the pause. Then others are served: its lock may be the only one that fails.
        let Ok(_permit) = limit.acquire().await else { return };
        let pause = {
            let Some(engine) = engine.upgrade() else { return };
            let now = clock.now();
            let end = match send_copy(&engine, &delivery, None, None, now).await {
                Ok(ReleaseAnswer::Released) => Some(DeliveryEnd::Released),
                Ok(_) => Some(DeliveryEnd::Gone),
                Err(error) if error.kind().is_transient() && now < delivery.expires => None,
                Err(_) => Some(DeliveryEnd::Unconfirmed),
            };
            if let Some(end) = end {
                return finish(&engine, &delivery, key, end);
            }
            let longest = engine.timing.heartbeat_pause(delivery.ttl);
            backoff(PLACE_PAUSE..=longest, failures, engine.entropy.fraction())
        };
        failures += 1;
        clock.sleep_until(clock.now() + pause).await;
    }
}

/// Sends one copy of a command. The reply has the form of one to a release, so that one loop sends all
/// commands.
async fn send_copy(
    engine: &Engine,
    delivery: &Delivery,
    keep: Option<Duration>,
    next: Option<NextPlace>,
    now: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    let timeout = match next {
        Some(next) => engine.place_deadline(next.terms.ttl),
        None => engine.timing.command_deadline(delivery.ttl),
    };
    let deadline = delivery.expires.min(now + timeout);
    let (store, name, id) = (&engine.store, delivery.name.clone(), delivery.id);
    match &delivery.kind {
        DeliveryKind::Release(fence) => {
            let next = next.map(|next| Next {
                id: next.id,
                mode: next.terms.mode,
                ttl: next.terms.ttl,
                watermark: engine.watermarks.of(now, &name).max(Some(*fence)),
                label: engine.label.clone(),
                keeps: next.keeps,
                heartbeat: next.heartbeat,
            });
            store.ask(now, Release { name, id, fence: *fence, keep, next }, deadline).await
        }
        DeliveryKind::Withdraw => {
            let answer = store.ask(now, Withdraw { name, id }, deadline).await?;
            Ok(if answer.ended_grant { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
        }
        DeliveryKind::Hold { lease, update } => {
            let (turn, update, ttl) = (lease.turn(), *update, delivery.ttl);
            let (fence, acks) = (turn.first(), turn.terms().acks);
            let hold = Hold { name, id, fence, update, ttl, acks };
            match store.ask(now, hold, deadline).await? {
                HoldAnswer::Held { remaining } => {
                    let _ = lease.extended(now, remaining);
                    Ok(ReleaseAnswer::Released)
                }
                HoldAnswer::Gone => Ok(lost(engine, lease, LossReason::Gone)),
                HoldAnswer::DataLost => Ok(lost(engine, lease, LossReason::DataLost)),
            }
        }
    }
}

/// The server does not have the lease whose holds were to be changed.
fn lost(engine: &Engine, lease: &HeldLease, reason: LossReason) -> ReleaseAnswer {
    let _ = lease.lose(reason);
    engine.on_lost(lease.turn(), reason, None);
    ReleaseAnswer::Gone
}
