use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::stream::{FuturesUnordered, StreamExt};
use leasehold_core::{
    Clock, Instant, LockName, StoreError, StoreErrorKind, backoff,
    lease::LossReason,
    store::{Hold, HoldAnswer, Next, Release, ReleaseAnswer, Withdraw},
};
use leasehold_watchdog::{HeldLease, Key};
use tokio::{
    select,
    sync::{Semaphore, SemaphorePermit, watch},
};

use crate::{
    durations::{LATE, MOMENT, PLACE_PAUSE},
    queue::{NextPlace, NextTurn, TimedAnswer, TurnId, unheard},
    timing::closed_for,
};

use super::{
    core::Engine,
    delivery::{Delivery, DeliveryKind},
    outbox::warn_of,
    repeat_rules::{DeliveryEnd, NextStep, RepeatRules},
};

/// Sends a command again and again until it is answered. If it is dropped before, for example by a tokio
/// runtime that stops, the command counts as unconfirmed.
#[derive(Debug)]
// ADR 0003
struct Sending {
    engine: Arc<Engine>,
    delivery: Delivery,
    key: Key,
    /// Why the last copy failed that did.
    failure: watch::Sender<Option<StoreError>>,
    /// How it ended; `None` before that.
    end: Option<DeliveryEnd>,
    /// Whether it goes on as a late withdrawal.
    is_late: bool,
}

impl Sending {
    /// Sends until the command is answered or has expired; dropping the future gives it up.
    async fn run(mut self) -> Result<DeliveryEnd, StoreError> {
        let end = self.send().await;
        self.end = Some(end);
        let failure = self.failure.borrow().clone();
        let may_come = failure.as_ref().is_none_or(|error| error.kind().is_transient());
        if end == DeliveryEnd::Unconfirmed && may_come && self.delivery.is_withdrawal() {
            self.is_late = self.engine.outbox.becomes_late(self.key);
        }
        if self.is_late {
            let (engine, limit) = (&self.engine, Arc::clone(&self.engine.outbox.late));
            let (weak, clock) = (Arc::downgrade(engine), Arc::clone(&engine.clock));
            engine.spawn(send_late(weak, clock, limit, self.key, self.delivery.clone()));
        }
        drop(self);
        match end {
            DeliveryEnd::Unconfirmed => Err(failure.unwrap_or_else(unheard)),
            end => Ok(end),
        }
    }

    async fn send(&self) -> DeliveryEnd {
        let Self { engine, delivery, .. } = self;
        let mut now = engine.clock.now();
        let mut rules = RepeatRules::new(now, delivery.expires, delivery.belief);
        let mut copies = FuturesUnordered::new();
        let (mut permit, mut next) = (None, None);
        loop {
            match rules.next(now) {
                NextStep::Done(end) => return end,
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
                    let keep = closed_for(delivery.closed_until, now);
                    // If a place depends on it, another copy follows whether or not this one is
                    // answered, as a heartbeat would.
                    let pause = |next: NextPlace| engine.timing.heartbeat_pause(next.terms.ttl);
                    rules.on_send(now, keep, next.map(|next| now + pause(next)));
                    copies.push(send_copy(engine, delivery, keep, next, now));
                }
                NextStep::Wait(until) => {
                    let may_hurry = match delivery.kind {
                        DeliveryKind::Release(_) => next.is_some(),
                        DeliveryKind::Withdraw => copies.is_empty(),
                        DeliveryKind::Hold { .. } => false,
                    };
                    let answer = select! {
                        biased;
                        Some(answer) = copies.next() => answer,
                        () = delivery.hurry.notified(), if may_hurry => {
                            now = engine.clock.now();
                            rules.on_copy_due(now);
                            continue;
                        }
                        () = engine.clock.sleep_until(until.unwrap_or(now)), if until.is_some() => {
                            now = engine.clock.now();
                            continue;
                        }
                    };
                    now = engine.clock.now();
                    permit = permit.filter(|_| !copies.is_empty());
                    let jitter = answer.result.as_ref().err().map(|_| engine.entropy.fraction());
                    rules.on_reply(now, jitter.unwrap_or_default(), &answer.result);
                    if !self.on_reply(answer) {
                        rules.on_next_turn();
                    }
                }
            }
        }
    }

    /// Counts the answer, and passes it to the state of the name; `false` when the next turn has
    /// begun.
    fn on_reply(&self, answer: TimedAnswer<ReleaseAnswer>) -> bool {
        let Self { engine, delivery, failure, .. } = self;
        if let Err(error) = &answer.result {
            engine.metrics.store().error(error.kind());
            failure.send_replace(Some(error.clone()));
            // It has not run: nobody learns more by waiting for it.
            let has_not_run = error.is_answer() || error.kind() == StoreErrorKind::Definite;
            if has_not_run && delivery.is_withdrawal() {
                engine.with(&delivery.name, |entry, env| {
                    entry.state.withdrawals.on_refusal(&mut env.effects, error);
                });
            }
        }
        let is_answered =
            answer.result.as_ref().map_or_else(|error| !error.kind().is_transient(), |_| true);
        let Some(turn) = delivery.turn else { return true };
        if let Ok(ReleaseAnswer::NextGranted(granted)) = &answer.result {
            engine.saw(answer.sent_at, &delivery.name, granted);
        }
        let repeats = engine
            .with(&delivery.name, |entry, env| entry.state.on_release_reply(env, turn, answer));
        repeats.unwrap_or(true) || is_answered
    }

    /// The place that is queued with the next copy, chosen with the first one.
    fn next_place(&self, is_first: bool) -> Result<Option<NextPlace>, NextTurn> {
        let Delivery { name, turn, belief, .. } = &self.delivery;
        let Some(turn) = turn.filter(|_| belief.is_none() || !is_first) else { return Ok(None) };
        let place = self.engine.with(name, |entry, env| entry.state.on_release_send(env, turn));
        place.unwrap_or(Ok(None))
    }

    /// Bounds the commands that no task waits for; a further one waits a claim window at most. A
    /// withdrawal goes at once when a call waits for it.
    async fn permit(&self, now: Instant) -> Option<SemaphorePermit<'_>> {
        let Engine { clock, entropy, timing, outbox, .. } = &*self.engine;
        let left = self.delivery.expires.saturating_since(now) / 2;
        // Those that begin together are not to be sent together in the end.
        let patience = timing.claim_window(self.delivery.ttl).min(left);
        let patience = patience.mul_f64(1.0 - entropy.fraction() / 2.0);
        select! {
            biased;
            permit = outbox.background.acquire() => permit.ok(),
            () = self.delivery.hurry.notified(), if self.delivery.is_withdrawal() => None,
            () = clock.sleep_until(now + patience) => None,
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let Self { engine, delivery, key, .. } = self;
        let end = self.end.unwrap_or(DeliveryEnd::Unconfirmed);
        if end == DeliveryEnd::Unconfirmed
            && let Some(turn) = delivery.turn
        {
            // Without effect when the server has refused, which the state knows.
            engine.with(&delivery.name, |entry, env| entry.state.on_release_given_up(env, turn));
        }
        if self.is_late {
            return;
        }
        // Last: what follows from the end is pending by now.
        if self.end.is_some() || !delivery.is_release() {
            return finish(engine, delivery, *key, end);
        }
        delivery.count(end);
        let left = engine.outbox.left(*key, &delivery.name);
        // What is in the memory of this process ends with it.
        if !engine.ending.refuses() && !engine.store.ends_with_process() {
            warn_of(&left);
        }
    }
}

/// A command is over, and pending no more.
fn finish(engine: &Engine, delivery: &Delivery, key: Key, end: DeliveryEnd) {
    if delivery.is_withdrawal() {
        engine.with(&delivery.name, |entry, env| {
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
    key: Key,
    mut delivery: Delivery,
) {
    delivery.expires = delivery.expires + LATE;
    let mut failures = 0;
    loop {
        // Also during the pause. Then others are served: its lock may be the only one that fails.
        let Ok(_permit) = limit.acquire().await else { return };
        let pause = {
            let Some(engine) = engine.upgrade() else { return };
            let now = clock.now();
            let answer = send_copy(&engine, &delivery, None, None, now).await;
            let end = match engine.counted(answer.result) {
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

/// Sends one copy of a command, and gives it up a moment after its deadline. The reply has the form of
/// one to a release, so that one loop sends all commands.
async fn send_copy(
    engine: &Engine,
    delivery: &Delivery,
    keep: Option<Duration>,
    next: Option<NextPlace>,
    now: Instant,
) -> TimedAnswer<ReleaseAnswer> {
    let timeout = match next {
        Some(next) => engine.place_deadline(next.terms.ttl),
        None => engine.timing.command_deadline(delivery.ttl),
    };
    let deadline = delivery.expires.min(now + timeout);
    let (store, name, id) = (&engine.store, delivery.name.clone(), delivery.id);
    let reply = async {
        match &delivery.kind {
            DeliveryKind::Release(fence) => {
                let next = next.map(|next| Next {
                    id: next.id,
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
    };
    let result = select! {
        biased;
        result = reply => result,
        () = engine.clock.sleep_until(deadline + MOMENT) => Err(unheard()),
    };
    TimedAnswer { sent_at: now, result }
}

/// The server does not have the lease whose holds were to be changed.
fn lost(engine: &Engine, lease: &HeldLease, reason: LossReason) -> ReleaseAnswer {
    let _ = lease.lose(reason);
    engine.on_lost(lease.turn(), reason, None);
    ReleaseAnswer::Gone
}

/// A command in the hands of the task that waits for its answer. Dropped before it is answered, as
/// with a cancelled future, it goes on in the runtime from where it stands.
///
/// It counts as pending. Never drop it inside of a lock of the engine.
#[must_use = "dropped at once, it goes on in the runtime"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    /// The turn that ends with it, if a holder waits for the answer.
    attended: Option<(LockName, TurnId)>,
    failure: watch::Receiver<Option<StoreError>>,
    sending: Option<SendingFuture>,
}

type SendingFuture = Pin<Box<dyn Future<Output = Result<DeliveryEnd, StoreError>> + Send>>;

impl Cleanup {
    /// Makes a command pending; `None` when too many are.
    pub(super) fn new(engine: &Engine, delivery: Delivery) -> Option<Self> {
        let engine = engine.me.upgrade()?;
        let Some(key) = engine.outbox.add(&delivery) else {
            delivery.count(DeliveryEnd::Unconfirmed);
            return None;
        };
        let turn = delivery.turn.filter(|_| delivery.belief.is_some());
        let attended = turn.map(|turn| (delivery.name.clone(), turn));
        let (failed, failure) = watch::channel(None);
        let (end, is_late) = (None, false);
        let sending =
            Sending { engine: Arc::clone(&engine), delivery, key, failure: failed, end, is_late };
        Some(Self { engine, attended, failure, sending: Some(Box::pin(sending.run())) })
    }

    /// Waits until the command is done, and until `until` at most; then it goes on in the runtime.
    ///
    /// `is_enough`: a failed first attempt also ends the wait. `is_its_deadline`: `until` is that
    /// of the first attempt, which fails by itself then.
    pub(crate) async fn wait(
        mut self,
        until: Instant,
        is_its_deadline: bool,
        is_enough: bool,
    ) -> Result<DeliveryEnd, StoreError> {
        let Self { engine, failure, sending, .. } = &mut self;
        let Some(running) = sending else { return Err(unheard()) };
        let mut failed = failure.clone();
        let over = async {
            engine.clock.sleep_until(until).await;
            if is_its_deadline {
                // Its failure says more, and comes at the same time.
                select! {
                    biased;
                    _ = failed.wait_for(Option::is_some) => {}
                    () = engine.clock.sleep_until(until + MOMENT) => {}
                }
            }
        };
        let ended = select! {
            biased;
            error = engine.until_forked() => return Err(error),
            end = running => Some(end),
            _ = failure.wait_for(Option::is_some), if is_enough => None,
            () = over => None,
        };
        let Some(end) = ended else { return Err(failure.borrow().clone().unwrap_or_else(unheard)) };
        self.sending = None;
        end
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(sending) = self.sending.take() else { return };
        if self.engine.is_forked() {
            return mem::forget(sending);
        }
        if let Some((name, turn)) = &self.attended {
            self.engine.with(name, |entry, _| entry.state.on_release_left(*turn));
        }
        self.engine.spawn(async move { drop(sending.await) });
    }
}
