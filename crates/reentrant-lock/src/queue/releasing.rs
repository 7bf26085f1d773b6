use std::sync::Arc;

use leasehold_core::{
    Fence, Instant, Mode, StoreError, Terms,
    lease::{Grant, LossReason},
    metric::{KeptOutcome, ReleaseVia, WakeSource},
    store::{Heartbeat, ReleaseAnswer},
};
use tokio::sync::futures::OwnedNotified;

use crate::timing::closed_for;

use super::{
    env::{EndedTurn, Env, NextPlace, TimedAnswer, TurnId, TurnRelease},
    name_state::{NameState, Phase, Releasing},
    place::QueuedPlace,
    turn::{TakenToken, Turn},
};

/// A turn after this one has begun: the server grants only what was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextTurn;

impl NameState {
    /// The lease with `token` is released. Its turn could be believed in until `until`. If the lock
    /// is to stay closed until `closed_until`, that ends the turn. Returns the release that the holder
    /// sends; `None` if the turn goes on, if the runtime sends it, for tasks that wait or for a guard that was
    /// dropped, or if the lease was over.
    pub(crate) fn on_release(
        &mut self,
        env: &mut Env<'_>,
        token: Fence,
        until: Instant,
        closed_until: Option<Instant>,
        via: ReleaseVia,
    ) -> Option<TurnRelease> {
        match &mut self.phase {
            Phase::Turn(turn) if turn.has_lease(token) => turn.until = until,
            _ => return None,
        }
        if (env.rules.ends_turn)(closed_for(closed_until, env.now)) {
            self.release(env, closed_until, None);
        } else {
            self.pass_on(env);
        }
        let is_waited_for = !self.queue.is_empty();
        let releasing = match &mut self.phase {
            // Tasks that wait queue with the release, unless the lock stays closed.
            Phase::Releasing(releasing) if !is_waited_for || releasing.stays_closed(env) => {
                releasing
            }
            _ => {
                env.effects.settled = Some(via);
                return None;
            }
        };
        let release = releasing.command(Some(via));
        if via == ReleaseVia::Drop {
            // The runtime sends it: the dropping task may be back by then, and queues with it.
            env.effects.release = Some(release);
            return None;
        }
        env.effects.release = None;
        (releasing.attended_since, releasing.sent_at) = (Some(env.now), Some(env.now));
        Some(release)
    }

    /// Whether a task holds the lease with `token`, as far as this runtime knows.
    pub(crate) fn has_lease(&self, token: Fence) -> bool {
        self.turn().is_some_and(|turn| turn.has_lease(token))
    }

    /// A copy of a release is about to be sent, unless the next turn has begun; returns the place
    /// that it queues.
    pub(crate) fn on_release_send(
        &mut self,
        env: &Env<'_>,
        turn: TurnId,
    ) -> Result<Option<NextPlace>, NextTurn> {
        let (has_begun, keeps) = (self.begun > Some(turn.first), self.keeps());
        let Some(releasing) = self.phase.releasing(turn) else {
            return if has_begun { Err(NextTurn) } else { Ok(None) };
        };
        if releasing.sent_at.is_some() {
            releasing.is_repeated = true;
            return Ok(releasing.next);
        }
        releasing.sent_at = Some(env.now);
        if !releasing.stays_closed(env) {
            releasing.next = self.queue.first().map(|(_, terms)| NextPlace {
                id: (env.rules.next_id)(env.id(), turn.id),
                terms,
                keeps,
                heartbeat: Heartbeat {
                    number: env.numbers.next_change(),
                    claim_window: env.timing.claim_window(terms.ttl),
                },
                sent_at: env.now,
            });
        }
        Ok(releasing.next)
    }

    /// A copy of a release was answered, or failed. Returns whether the release goes on if it
    /// failed; `RepeatRules` decide when the next copy is sent. Its next id stays the same.
    pub(crate) fn on_release_reply(
        &mut self,
        env: &mut Env<'_>,
        turn: TurnId,
        answer: TimedAnswer<ReleaseAnswer>,
    ) -> bool {
        let Some(releasing) = self.phase.releasing(turn) else {
            // A push has begun the next turn; or another copy was answered, which says nothing to
            // the task that waits for this one.
            return self.begun <= Some(turn.first);
        };
        if answer.result.as_ref().is_err_and(|error| error.kind().is_transient()) {
            releasing.is_repeated = true;
            return true;
        }
        let Phase::Releasing(releasing) = std::mem::take(&mut self.phase) else { return false };
        self.withdrawals.wake_tries(&mut env.effects);
        let is_refused = answer.result.is_err();
        let repeats = releasing.is_repeated && releasing.next.is_none();
        // If the server refused to keep the lock closed, a withdrawal would open it early.
        if (releasing.turn.unanswered.is_any() || repeats || is_refused)
            && !(is_refused && releasing.stays_closed(env))
        {
            env.effects.withdraw.push((turn.id, releasing.turn.grant.ttl()));
        }
        match (answer.result, releasing.next) {
            (Ok(answered), _) => self.follow(env, &releasing, answer.sent_at, answered),
            // The runtime asks for tasks that came later.
            (Err(_), None) => self.ask_anew(env),
            (Err(error), Some(next)) => {
                if releasing.is_repeated {
                    // An earlier copy may have queued it.
                    env.effects.withdraw.push((next.id, next.terms.ttl));
                }
                self.fail(env, &error);
            }
        }
        false
    }

    /// The holder waits no longer for the answer to its release, which goes on in the runtime.
    pub(crate) fn on_release_left(&mut self, turn: TurnId) {
        if let Some(releasing) = self.phase.releasing(turn) {
            releasing.attended_since = None;
        }
    }

    /// A try waits while a release or withdrawal is on its way: it is notified when one is over. `None`
    /// if there is none; an error if the server has refused one.
    pub(crate) fn awaits_release(&mut self) -> Result<Option<OwnedNotified>, StoreError> {
        let is_on_its_way = match &self.phase {
            Phase::Releasing(_) => true,
            Phase::Idle => self.withdrawals.has_any(),
            _ => false,
        };
        if !is_on_its_way || !self.queue.is_empty() {
            return Ok(None);
        }
        match (&self.phase, self.withdrawals.refusal()) {
            (Phase::Idle, Some(refusal)) => Err(refusal.clone()),
            _ => Ok(Some(self.withdrawals.watch())),
        }
    }

    /// Nothing waits for the answer to a release any longer.
    pub(crate) fn on_release_given_up(&mut self, env: &mut Env<'_>, turn: TurnId) {
        if self.phase.releasing(turn).is_none() {
            return;
        }
        let Phase::Releasing(releasing) = std::mem::take(&mut self.phase) else { return };
        self.withdrawals.wake_tries(&mut env.effects);
        if !releasing.stays_closed(env) {
            env.effects.withdraw.push((turn.id, releasing.turn.grant.ttl()));
        }
        match releasing.next {
            // No task knows that the lock is free: that can wait for the next round of heartbeats.
            None => self.ask_anew(env),
            Some(_) => self.follow(env, &releasing, env.now, ReleaseAnswer::Gone),
        }
    }

    fn follow(
        &mut self,
        env: &mut Env<'_>,
        releasing: &Releasing,
        sent_at: Instant,
        answer: ReleaseAnswer,
    ) {
        let Some(next) = releasing.next else {
            self.ask_anew(env);
            return self.beat(env);
        };
        if self.queue.is_empty() {
            // All tasks left meanwhile. `Released` says that no place was queued.
            if answer != ReleaseAnswer::Released {
                env.effects.withdraw.push((next.id, next.terms.ttl));
            }
            return;
        }
        let mut place = QueuedPlace::wanted(env, next.id, next.terms, next.keeps);
        place.remember(next.heartbeat.number, next.sent_at);
        if releasing.is_repeated {
            place.unanswered.on_send();
        }
        place.asks_soon = releasing.asks_soon;
        match answer {
            ReleaseAnswer::NextGranted(granted) => {
                let grant = Grant::from_granted(env.name, next.id, next.terms, sent_at, &granted);
                self.phase = Phase::Place(Box::new(place));
                self.consider(env, grant, granted.contended, WakeSource::Heartbeat);
            }
            ReleaseAnswer::NextQueued(position) => {
                place.on_not_yet(env, sent_at, position);
                if releasing.is_repeated {
                    // A repeat answers with the place, but only a heartbeat keeps it alive.
                    place.ask_at(env.now);
                }
                self.phase = Phase::Place(Box::new(place));
            }
            ReleaseAnswer::Gone | ReleaseAnswer::DataLost => {
                self.phase = Phase::Place(Box::new(place));
            }
            ReleaseAnswer::Released | ReleaseAnswer::Kept { .. } => {
                self.ask_anew(env);
                self.beat(env);
            }
        }
    }

    /// No task has the present token: the next task is offered the next one, or the turn is kept,
    /// or it ends.
    pub(super) fn pass_on(&mut self, env: &mut Env<'_>) {
        let Phase::Turn(turn) = &mut self.phase else { return };
        let local = Some(WakeSource::Local);
        match self.queue.first() {
            Some((ticket, terms))
                if !turn.is_over_for(env, terms) && turn.offer(env, ticket, local) =>
            {
                env.effects.wake.extend(self.queue.waker(ticket));
            }
            None if self.keep.is_some_and(|keep| turn.keep_idle(env, keep.idle)) => {}
            _ => self.release(env, None, None),
        }
    }

    /// The turn ends, which counts as the release `via`. The tasks that wait here queue behind the
    /// others in the same step, or, where the lock stays closed, once the release was answered.
    pub(super) fn release(
        &mut self,
        env: &mut Env<'_>,
        closed_until: Option<Instant>,
        via: Option<ReleaseVia>,
    ) {
        let Some(turn) = self.end_turn(env) else { return };
        let releasing = Releasing {
            turn,
            next: None,
            sent_at: None,
            is_repeated: false,
            closed_until,
            attended_since: None,
            asks_soon: None,
            hurry: Arc::default(),
        };
        env.effects.release = Some(releasing.command(via));
        self.phase = Phase::Releasing(Box::new(releasing));
    }

    /// An operator force-released a turn.
    pub(crate) fn on_force_released(&mut self, env: &mut Env<'_>, turn: TurnId) {
        if self.has_turn(turn) {
            env.effects.lost = Some(LossReason::ForceReleased);
            self.lose(env, None);
        }
        // The grant may come after its force-release, and is not to begin a turn then.
        // Nor are the readers of its fence to be joined again.
        let over = match env.mode {
            Mode::Write => Some(turn.first),
            Mode::Read => Fence::try_from(turn.first.get() + 1).ok(),
        };
        self.begun = self.begun.max(over);
    }

    /// A turn is lost, and so is the lease of it that a task holds.
    pub(crate) fn on_lost(
        &mut self,
        env: &mut Env<'_>,
        turn: TurnId,
        reason: LossReason,
        closed_until: Option<Instant>,
    ) {
        if !self.has_turn(turn) {
            return;
        }
        // ADR 0011
        if reason == LossReason::MaxHold {
            // The server still has it, and its holder may never look at it again.
            return self.release(env, closed_until, Some(ReleaseVia::MaxHold));
        }
        env.effects.lost = Some(reason);
        let needs_acks = self.turn().is_some_and(|turn| turn.grant.terms().acks.are_asked());
        let is_waited_for = !self.queue.is_empty() || needs_acks;
        if reason == LossReason::Expired && is_waited_for {
            // The server may still have it: others are not to wait for that. If too few replicas had
            // its renewals, the master has extended it all the same.
            self.release(env, closed_until, None);
        } else {
            self.lose(env, closed_until);
        }
    }

    fn has_turn(&self, id: TurnId) -> bool {
        self.turn().is_some_and(|turn| turn.id() == id)
    }

    /// The turn is over here, and not watched any more.
    fn end_turn(&mut self, env: &mut Env<'_>) -> Option<Turn> {
        let was_idle = self.is_idle();
        let Phase::Turn(turn) = std::mem::take(&mut self.phase) else { return None };
        if was_idle {
            env.effects.kept.get_or_insert(KeptOutcome::Lapsed);
        }
        let Turn { watch, leases, was_wanted, .. } = turn;
        let may_be_kept = self.keep.is_some();
        env.effects.ended = Some(EndedTurn { watch, leases, was_wanted, may_be_kept });
        Some(turn)
    }

    /// The turn is lost: its tasks queue under a fresh id, in the order that they have.
    fn lose(&mut self, env: &mut Env<'_>, closed_until: Option<Instant>) {
        let Some(turn) = self.end_turn(env) else { return };
        // A withdrawal would open a lock that is to stay closed.
        if turn.unanswered.is_any() && closed_for(closed_until, env.now).is_none() {
            env.effects.withdraw.push((turn.grant.id(), turn.grant.ttl()));
        }
        self.ask_anew(env);
    }

    /// The runtime asks under a fresh id, if tasks wait.
    pub(super) fn ask_anew(&mut self, env: &Env<'_>) {
        let wanted = |terms| QueuedPlace::wanted(env, env.id(), terms, self.keeps());
        self.phase = match self.queue.first() {
            None => Phase::Idle,
            Some((_, terms)) => Phase::Place(Box::new(wanted(terms))),
        };
    }

    pub(crate) fn idle_turn(&self) -> Option<TurnId> {
        self.turn().filter(|turn| turn.idle_ends_at().is_some()).map(Turn::id)
    }

    /// A task takes the next token of an idle turn, which ends if it does not serve the task.
    pub(super) fn reuse(&mut self, env: &mut Env<'_>, terms: Terms) -> Option<TakenToken> {
        let until = self.idle_ends_at()?;
        let Phase::Turn(turn) = &mut self.phase else { return None };
        // The timer may be late: the clock decides.
        let is_in_time = (env.rules.is_believed)(env.now, until);
        let serves = self.keep.is_some() && is_in_time && terms == turn.grant.terms();
        if serves && turn.offer(env, env.numbers.next(), None) {
            env.effects.kept = Some(KeptOutcome::Reused);
            return turn.hand_over(env);
        }
        self.end_idle(env, KeptOutcome::Lapsed);
        None
    }

    /// Another runtime wants the lock. If that is about another turn than the present one, it is
    /// remembered: the grant of that turn may be on its way.
    pub(crate) fn on_wanted(&mut self, env: &mut Env<'_>, wanted: TurnId) {
        let waiting = self.queue.len();
        match &mut self.phase {
            Phase::Turn(turn) if turn.id() == wanted => {
                turn.on_wanted(env.now, waiting - usize::from(turn.open_offer().is_some()));
                self.end_idle(env, KeptOutcome::Recalled);
            }
            _ => self.wanted = Some(Box::new(wanted)),
        }
    }

    /// An idle turn is kept no longer.
    pub(crate) fn end_idle(&mut self, env: &mut Env<'_>, outcome: KeptOutcome) {
        if self.is_idle() {
            env.effects.kept = Some(outcome);
            self.release(env, None, None);
        }
    }
}

impl Phase {
    /// A turn that is being given back, if it is this one.
    fn releasing(&mut self, id: TurnId) -> Option<&mut Releasing> {
        match self {
            Self::Releasing(releasing) if releasing.turn.id() == id => Some(releasing),
            _ => None,
        }
    }
}
