use std::{
    sync::Arc,
    task::{Poll, Waker},
};

use leasehold_core::{
    AcquisitionId, Fence, Instant, Mode, StoreError, StoreErrorKind, Terms,
    lease::Grant,
    metric::WakeSource,
    store::{AcquireAnswer, Granted, Heartbeat, RenewAnswer},
};
use leasehold_watchdog::Watch;

use crate::durations::PLACE_PAUSE;

use super::{
    env::{Env, Outgoing, TimedAnswer, TurnId},
    local_queue::Ticket,
    name_state::{FirstAcquire, NameState, Phase},
    turn::{Keep, Offer, TakenToken, TokenState, Turn, UnansweredCommands},
};

/// The state of a task that acquires a lock: it waits, has its lease `L`, or gets none.
pub(crate) type LeasePoll<L> = Poll<Result<L, NoLease>>;

/// Why a task gets no lease, at least for now.
#[derive(Debug)]
pub(crate) enum NoLease {
    /// Another has the lock, and the task does not wait.
    Busy,
    /// As `Busy`, but the other may keep the lock idle, and then gives it up when somebody waits for it.
    Kept,
    /// As `Busy`, but this runtime is just releasing the lock, or withdrawing an acquisition of it.
    Releasing,
    /// It did not take an offer in time, or its owner got the lock: it may come anew.
    Dismissed,
    Failed(StoreError),
    Closed,
    TimedOut,
    Unavailable,
}

/// The command that the first task of all sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead {
    pub(crate) id: AcquisitionId,
    /// `None` for one that does not wait.
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Whether the lease is to say that the runtime keeps it.
    pub(crate) keeps: bool,
    pub(crate) sent_at: Instant,
    /// The first token of the last turn begun: the watermark may be forgotten by now.
    pub(crate) begun: Option<Fence>,
}

/// What a task gets that joins.
#[derive(Debug)]
pub(crate) enum Joined<T> {
    /// It stands in line; the first of all has a command to send.
    InLine(Ticket, Option<Lead>),
    /// It goes on with an idle turn.
    Taken(T),
}

impl NameState {
    /// A task comes for a lease on `terms`. One that only tries, and would have to wait, gets `Busy`
    /// or `Releasing`.
    pub(crate) fn join(
        &mut self,
        env: &mut Env<'_>,
        terms: Terms,
        tries: bool,
        keep: Option<Keep>,
    ) -> Result<Joined<TakenToken>, NoLease> {
        self.keep = keep;
        if self.is_idle()
            && let Some(taken) = self.reuse(env, terms)
        {
            return Ok(Joined::Taken(taken));
        }
        let leads = matches!(self.phase, Phase::Idle) && self.queue.is_empty();
        if leads {
            self.withdrawals.hurry(&mut env.effects);
        }
        if tries && (!leads || self.withdrawals.has_any()) {
            let soon = self.opens_soon(env);
            return Err(if soon { NoLease::Releasing } else { NoLease::Busy });
        }
        let ticket = env.numbers.next();
        self.queue.join(ticket, terms);
        Ok(Joined::InLine(ticket, leads.then(|| self.lead(env, ticket, terms, tries))))
    }

    fn lead(&mut self, env: &Env<'_>, lead: Ticket, terms: Terms, tries: bool) -> Lead {
        let (id, sent_at, keeps) = (env.acquisition_id(lead), env.now, self.keeps());
        let claim_window = env.timing.claim_window(terms.ttl);
        let heartbeat =
            (!tries).then(|| Heartbeat { number: env.numbers.next_change(), claim_window });
        self.phase = Phase::Asking(FirstAcquire {
            id,
            terms,
            heartbeat: heartbeat.map(|heartbeat| heartbeat.number),
            keeps,
            sent_at,
            polled_at: sent_at,
            calls_at: Some(env.next_heartbeat(sent_at, terms.ttl)),
            asks_soon: None,
        });
        Lead { id, heartbeat, keeps, sent_at, begun: self.begun }
    }

    /// Whether no task waits here, and a release or withdrawal is on its way.
    fn opens_soon(&self, env: &Env<'_>) -> bool {
        let is_ending = match &self.phase {
            Phase::Releasing(releasing) => !releasing.stays_closed(env),
            Phase::Idle => self.withdrawals.has_any(),
            _ => false,
        };
        self.queue.is_empty() && is_ending
    }

    /// Returns the state of a task, and has `waker` woken when it changes.
    pub(crate) fn poll(
        &mut self,
        env: &mut Env<'_>,
        ticket: Ticket,
        waker: &Waker,
    ) -> LeasePoll<TakenToken> {
        if let Some(error) = self.queue.failure(ticket) {
            return Poll::Ready(Err(NoLease::Failed(error)));
        }
        if !self.queue.has(ticket) {
            return Poll::Ready(Err(NoLease::Dismissed));
        }
        if let Phase::Asking(asking) = &mut self.phase
            && asking.lead() == ticket
        {
            // If the answer takes longer than the pause between two heartbeats, the runtime keeps the
            // place. One that only tries has none, unless others wait behind it.
            asking.polled_at = env.now;
            let is_wanted = asking.heartbeat.is_some() || self.queue.len() > 1;
            if asking.calls_at.is_none() && is_wanted {
                self.keep_place(env);
                self.beat(env);
            } else {
                let next = || env.next_heartbeat(env.now, asking.terms.ttl);
                asking.calls_at.get_or_insert_with(next);
            }
        }
        if let Some(taken) = self.take(env, ticket) {
            return Poll::Ready(Ok(taken));
        }
        self.queue.set_waker(ticket, waker, &mut env.effects.discarded);
        Poll::Pending
    }

    /// The runtime keeps the place of the first task, whose own command is in flight.
    pub(super) fn keep_place(&mut self, env: &Env<'_>) {
        if let Phase::Asking(asking) = &self.phase {
            self.phase = Phase::Place(Box::new(asking.place(env)));
        }
    }

    /// Sends a heartbeat of the place, if there is one.
    pub(super) fn beat(&mut self, env: &mut Env<'_>) {
        if let Phase::Place(place) = &mut self.phase {
            env.effects.send = Some(Outgoing::Heartbeat(Box::new(place.beat(env, self.begun))));
        }
    }

    /// A task takes the token that it was offered, if it was. If it comes too late, the turn ends.
    fn take(&mut self, env: &mut Env<'_>, ticket: Ticket) -> Option<TakenToken> {
        let Phase::Turn(turn) = &mut self.phase else { return None };
        let is_its = |offer: Offer| (env.rules.may_take)(offer.ticket, ticket);
        if !turn.open_offer().is_some_and(is_its) {
            return None;
        }
        if !(env.rules.is_believed)(env.now, turn.until) {
            // The process was away for too long: the turn is over, and its tasks keep their order.
            self.release(env, None, None);
            return None;
        }
        let taken = turn.hand_over(env);
        self.queue.leave(ticket, &mut env.effects.discarded);
        taken
    }

    pub(crate) fn on_watch(&mut self, watch: Watch) {
        if let Phase::Turn(turn) = &mut self.phase {
            turn.watch = Some(watch);
        }
    }

    /// A task waits no longer: it was cancelled, or its time is over.
    pub(crate) fn leave(&mut self, env: &mut Env<'_>, ticket: Ticket) {
        if !self.queue.leave(ticket, &mut env.effects.discarded) {
            return;
        }
        match &mut self.phase {
            Phase::Asking(asking) if asking.lead() == ticket && self.queue.is_empty() => {
                env.effects.withdraw.push((asking.id, asking.terms.ttl));
                self.phase = Phase::Idle;
            }
            // Its command may still be executed.
            Phase::Asking(asking) if asking.lead() == ticket => self.keep_place(env),
            Phase::Turn(turn) if turn.open_offer().is_some_and(|offer| offer.ticket == ticket) => {
                self.pass_on(env);
            }
            // No task wants the place any more: its id is dead.
            Phase::Place(place) if self.queue.is_empty() => {
                if place.may_be_known() {
                    env.effects.withdraw.push((place.id, place.terms.ttl));
                }
                self.phase = Phase::Idle;
            }
            // Another task has the turn, or a command in flight settles it.
            _ => {}
        }
    }

    /// The command of the first task was answered. After a push, or if the runtime keeps the place
    /// by now, that is the answer to a heartbeat.
    pub(crate) fn on_first_reply(
        &mut self,
        env: &mut Env<'_>,
        lead: Ticket,
        tries: bool,
        answer: TimedAnswer<AcquireAnswer>,
    ) -> LeasePoll<TakenToken> {
        let instead =
            if tries { Poll::Ready(Err(end_of_try(&answer.result))) } else { Poll::Pending };
        match (&self.phase, &answer.result) {
            (Phase::Asking(asking), Ok(AcquireAnswer::Granted(granted)))
                if asking.lead() == lead =>
            {
                let grant =
                    Grant::from_granted(env.name, asking.id, asking.terms, answer.sent_at, granted);
                let is_late = grant.remaining(env.now).is_zero();
                // The grant is old if it was ended by force while its answer was under way.
                if is_late || !self.is_news(env, &grant) {
                    self.keep_place(env);
                }
                if !is_late {
                    self.begin(env, grant, granted.contended, None);
                }
            }
            (phase, result) => {
                let id = env.acquisition_id(lead);
                let is_refused = tries && matches!(result, Ok(AcquireAnswer::Busy { .. }));
                if matches!(phase, Phase::Asking(asking) if asking.lead() == lead) {
                    self.keep_place(env);
                }
                match &mut self.phase {
                    // One that only tried was refused; the place is that of the tasks behind it.
                    Phase::Place(place) if is_refused && place.id == id => {
                        place.unanswered.on_reply(&answer.result);
                    }
                    _ => self.on_reply(env, id, answer),
                }
            }
        }
        if let Some(error) = self.queue.failure(lead) {
            return Poll::Ready(Err(NoLease::Failed(error)));
        }
        if let Some(taken) = self.take(env, lead) {
            // Only this task was to be woken, and it is running.
            env.effects.discarded.append(&mut env.effects.wake);
            return Poll::Ready(Ok(taken));
        }
        if tries {
            self.leave(env, lead);
        }
        instead
    }

    /// The turn begins, if the grant is news; the first task in order is offered the first token.
    pub(super) fn begin(
        &mut self,
        env: &mut Env<'_>,
        grant: Grant,
        contended: bool,
        source: Option<WakeSource>,
    ) {
        if !self.is_news(env, &grant) {
            if let Phase::Place(place) = &mut self.phase {
                place.ask_at(env.next_heartbeat(env.now, place.terms.ttl));
            }
            return;
        }
        let Some((ticket, terms)) = self.queue.first() else {
            return self.orphan(env, grant.id());
        };
        let (unanswered, keeps) = self.end_asking(env, source);
        self.begun = Some(grant.first());
        // The message may have come before the grant.
        let contended = contended || self.wanted.as_deref() == Some(&TurnId::of(&grant));
        // If more is left than its task's ttl, the lease would outlive that: the turn ends at once.
        let fits = grant.remaining(env.now) <= terms.ttl.get();
        let grant = if fits { grant.for_ttl(terms.ttl) } else { grant };
        let is_for_it = grant.terms() == terms;
        self.phase = Phase::Turn(Turn {
            token: grant.first(),
            until: grant.believed_until(),
            grant: Arc::new(grant),
            // Readers are told of a writer in any case.
            keeps: keeps || env.mode == Mode::Read,
            wanted_at: contended.then_some(env.now),
            was_wanted: contended || source == Some(WakeSource::Push),
            to_serve: u16::try_from(self.queue.len() - 1).unwrap_or(u16::MAX),
            began_at: None,
            leases: 0,
            token_state: TokenState::Offered(Offer { ticket, at: env.now, source }),
            watch: None,
            unanswered,
        });
        if is_for_it {
            env.effects.wake.extend(self.queue.waker(ticket));
        } else {
            // The task on whose terms it was asked is gone.
            self.release(env, None, None);
        }
    }

    /// Whether a grant may begin a turn. Readers who left may join the same readers again, under the same fence.
    fn is_news(&self, env: &Env<'_>, grant: &Grant) -> bool {
        let first = grant.first();
        match env.mode {
            Mode::Write => (env.rules.is_news)(first, self.begun),
            Mode::Read => self.begun.is_none_or(|begun| first >= begun),
        }
    }

    /// Takes over from what asked for the turn: the commands that may still be executed, and whether the
    /// lease says that the runtime keeps it.
    fn end_asking(
        &mut self,
        env: &mut Env<'_>,
        source: Option<WakeSource>,
    ) -> (UnansweredCommands, bool) {
        let mut unanswered = UnansweredCommands::default();
        match std::mem::take(&mut self.phase) {
            Phase::Place(place) => (place.unanswered, place.keeps),
            Phase::Asking(asking) => {
                if source.is_some() {
                    // A push came before the answer.
                    unanswered.on_send();
                }
                (unanswered, asking.keeps)
            }
            // The release that queued it may have been sent more than once.
            Phase::Releasing(releasing) => {
                let Turn { grant, unanswered: old, .. } = &releasing.turn;
                if old.is_any() {
                    env.effects.withdraw.push((grant.id(), grant.ttl()));
                }
                if releasing.is_repeated {
                    unanswered.on_send();
                }
                self.withdrawals.wake_tries(&mut env.effects);
                (unanswered, releasing.next.is_some_and(|next| next.keeps))
            }
            Phase::Turn(_) | Phase::Idle => (unanswered, false),
        }
    }

    /// A command about the place was answered, or failed.
    pub(crate) fn on_reply(
        &mut self,
        env: &mut Env<'_>,
        id: AcquisitionId,
        answer: TimedAnswer<AcquireAnswer>,
    ) {
        let place = match &mut self.phase {
            Phase::Place(place) if place.id == id => place,
            Phase::Turn(turn) if turn.grant.id() == id => {
                turn.unanswered.on_reply(&answer.result);
                // After data loss a late copy may get a second grant for this id, which has one
                // lease only. An older grant ran out before, and the present one came by a push.
                if let Ok(AcquireAnswer::Granted(granted)) = &answer.result
                    && granted.first > turn.grant.first()
                {
                    env.effects.withdraw.push((id, turn.grant.ttl()));
                }
                return;
            }
            Phase::Releasing(releasing) if releasing.turn.grant.id() == id => {
                return releasing.turn.unanswered.on_reply(&answer.result);
            }
            _ => {
                match &answer.result {
                    Ok(AcquireAnswer::Granted(_)) => self.orphan(env, id),
                    Err(error) if error.is_unacknowledged() => self.orphan(env, id),
                    _ => {}
                }
                return;
            }
        };
        place.unanswered.on_reply(&answer.result);
        match answer.result {
            Ok(AcquireAnswer::Granted(granted)) => {
                place.on_answer();
                let grant =
                    Grant::from_granted(env.name, id, place.terms, answer.sent_at, &granted);
                self.consider(env, grant, granted.contended, WakeSource::Heartbeat);
            }
            Ok(AcquireAnswer::Queued(position)) => {
                place.on_not_yet(env, answer.sent_at, position);
            }
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) => self.ask_anew(env),
            Err(error) if error.is_unacknowledged() => {
                self.take_back(env, answer.sent_at, error);
            }
            Err(error) if error.kind().is_transient() => {
                place.on_failure(env, answer.sent_at, error);
            }
            Err(error) => {
                // It is not left to lapse.
                if place.may_be_queued() {
                    env.effects.withdraw.push((id, place.terms.ttl));
                }
                self.fail(env, &error);
            }
        }
    }

    /// The store pushed a grant, which names the last heartbeat that the store had heard.
    pub(crate) fn on_grant(
        &mut self,
        env: &mut Env<'_>,
        id: AcquisitionId,
        granted: &Granted,
        number: u64,
    ) {
        let Some(terms) = self.awaited(id) else { return self.orphan(env, id) };
        // Unknown heartbeat: nothing of the grant is believed, so it is confirmed first.
        let sent_at = self.heartbeat_sent_at(number).unwrap_or_default();
        let counts_from = (env.rules.push_counts_from)(sent_at, env.now);
        let grant = Grant::from_granted(env.name, id, terms, counts_from, granted);
        self.consider(env, grant, granted.contended, WakeSource::Push);
    }

    /// Whether a push of a grant for this acquisition is awaited.
    pub(crate) fn awaits(&self, id: AcquisitionId) -> bool {
        self.awaited(id).is_some()
    }

    /// The terms of an acquisition that a push may grant.
    fn awaited(&self, id: AcquisitionId) -> Option<Terms> {
        match &self.phase {
            Phase::Place(place) if place.id == id => Some(place.terms),
            Phase::Asking(asking) if asking.id == id => Some(asking.terms),
            Phase::Releasing(releasing) => {
                releasing.next.filter(|next| next.id == id).map(|next| next.terms)
            }
            _ => None,
        }
    }

    /// When the heartbeat with this number was sent for that acquisition; `None` if it is unknown.
    fn heartbeat_sent_at(&self, number: u64) -> Option<Instant> {
        match &self.phase {
            Phase::Place(place) => place.sent_at(number),
            Phase::Asking(asking) => (asking.heartbeat == Some(number)).then_some(asking.sent_at),
            Phase::Releasing(releasing) => {
                let next = releasing.next.filter(|next| next.heartbeat.number == number);
                next.map(|next| next.sent_at)
            }
            _ => None,
        }
    }

    /// Begins a turn with a grant of the present acquisition, if it is news and can be believed. A
    /// grant that needs acknowledgements, and did not wait for them, is confirmed by a renewal that
    /// does.
    // ADR 0006
    pub(super) fn consider(
        &mut self,
        env: &mut Env<'_>,
        grant: Grant,
        contended: bool,
        source: WakeSource,
    ) {
        let is_news = self.is_news(env, &grant);
        let is_enough = grant.remaining(env.now) >= env.timing.enough(grant.ttl());
        if !is_news || is_enough && !(env.rules.needs_acks)(grant.terms().acks) {
            return self.begin(env, grant, contended, Some(source));
        }
        // Otherwise one renewal says whether the grant is still there, and who has it.
        self.keep_place(env);
        if let Phase::Place(place) = &mut self.phase
            && place.confirming.replace(grant.first()) != Some(grant.first())
        {
            env.effects.send = Some(Outgoing::Confirm(Box::new(grant)));
        } else if let Phase::Releasing(releasing) = &mut self.phase {
            // The answer to the release, or to its next copy, tells of the grant once more.
            releasing.asks_soon.get_or_insert(env.now + PLACE_PAUSE);
        }
    }

    pub(crate) fn on_confirmation(
        &mut self,
        env: &mut Env<'_>,
        grant: Grant,
        answer: TimedAnswer<RenewAnswer>,
    ) {
        let place = match &mut self.phase {
            Phase::Place(place) if place.id == grant.id() => place,
            _ => return self.orphan(env, grant.id()),
        };
        if place.confirming.take().is_none() {
            return;
        }
        place.ask_at(env.now);
        match answer.result {
            Ok(RenewAnswer::Renewed { remaining }) => {
                let grant = grant.renewed(answer.sent_at, remaining);
                if !grant.remaining(env.now).is_zero() {
                    // The answer does not say whether others wait; mostly they do.
                    self.begin(env, grant, true, Some(WakeSource::Push));
                }
            }
            // That ends the grant, not the acquisition, which keeps its place: it asks again.
            Ok(RenewAnswer::Gone | RenewAnswer::DataLost | RenewAnswer::Corrupt) => {}
            Err(error) if error.is_unacknowledged() => {
                self.take_back(env, answer.sent_at, error);
            }
            Err(error) => place.on_failure(env, answer.sent_at, error),
        }
    }

    /// Too few replicas have the grant: it is withdrawn, and the runtime asks under a fresh id after
    /// a pause. Meanwhile others may have the lock. If the server cannot wait for replicas at all,
    /// waiting does not help.
    fn take_back(&mut self, env: &mut Env<'_>, sent_at: Instant, error: StoreError) {
        let Phase::Place(mut old) = std::mem::take(&mut self.phase) else { return };
        env.effects.withdraw.push((old.id, old.terms.ttl));
        if !error.kind().is_transient() {
            return self.fail(env, &error);
        }
        self.ask_anew(env);
        if let Phase::Place(place) = &mut self.phase {
            place.follow(env, &mut old, sent_at, error);
        }
    }

    /// Withdraws the id of a grant that is neither the present nor the next one of this runtime.
    pub(super) fn orphan(&mut self, env: &mut Env<'_>, id: AcquisitionId) {
        let known = match &self.phase {
            // A grant that is no longer live is ignored, and costs no task its place.
            Phase::Place(place) => place.id == id,
            Phase::Asking(asking) => asking.id == id,
            Phase::Turn(turn) => turn.grant.id() == id,
            Phase::Releasing(releasing) => {
                releasing.turn.grant.id() == id || releasing.next.is_some_and(|next| next.id == id)
            }
            Phase::Idle => false,
        };
        if !known && !self.withdrawals.has(id) {
            env.effects.withdraw.push((id, env.timing.ttl));
        }
    }

    /// Waiting does not help any task here.
    pub(super) fn fail(&mut self, env: &mut Env<'_>, error: &StoreError) {
        self.phase = Phase::Idle;
        env.effects.wake.extend(self.queue.fail(error));
    }
}

/// How a try ends that got no lease by its answer.
fn end_of_try(result: &Result<AcquireAnswer, StoreError>) -> NoLease {
    match result {
        Ok(AcquireAnswer::Busy { keeps: true, .. }) => NoLease::Kept,
        Ok(AcquireAnswer::Busy { .. }) => NoLease::Busy,
        Ok(_) => NoLease::Failed(too_late()),
        Err(error) => NoLease::Failed(error.clone()),
    }
}

/// A try has no use for its answer: the grant is over, or its id was withdrawn.
fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "an answer was taken too late to be believed",
        "poll the acquiring future in time: look for blocking code on its executor",
    )
    .as_answer()
}
