use std::{
    sync::Arc,
    task::{Poll, Waker},
};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, StoreError, Terms,
    lease::Grant,
    store::{AcquireAnswer, Heartbeat},
};
use leasehold_watchdog::Watch;

use super::{
    Answer,
    idle::Keep,
    phase::{Asking, Offer, Phase},
    place::Place,
    queue::Ticket,
    state::{Cohort, Env, Outgoing},
    too_late,
};

/// Where a task stands that acquires a lock: it waits, has its lease `L`, or gets none.
pub(crate) type Progress<L> = Poll<Result<L, NoLease>>;

/// Why a task gets no lease, at least for now.
#[derive(Debug)]
pub(crate) enum NoLease {
    /// Another has the lock, and the task does not wait.
    Busy,
    /// As `Busy`; but the other may keep the lock idle, and give it up when somebody waits for it.
    Kept,
    /// As `Busy`; but the runtime is just giving back or withdrawing what it has of the lock.
    Releasing,
    /// It did not take an offer in time: it may join anew.
    Dismissed,
    Failed(StoreError),
    Closed,
    HeldByOwner,
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
    pub(crate) begun: Option<FenceToken>,
}

/// An offer that a task has taken.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) turn: Arc<Grant>,
    pub(crate) token: FenceToken,
    pub(crate) offer: Offer,
    pub(crate) until: Instant,
    pub(crate) watch: Option<Watch>,
    pub(crate) first: bool,
}

/// How a task comes in: with a place `P` in line, or with a lease `L`.
#[derive(Debug)]
pub(crate) enum Joined<P = (Ticket, Option<Lead>), L = Taken> {
    /// It stands in line; the first of all has a command to send.
    InLine(P),
    /// It goes on with an idle turn.
    Taken(L),
}

impl Cohort {
    /// A task comes for a lease on `terms`. One that only tries, and would have to wait, gets `Busy`
    /// or `Releasing`.
    pub(crate) fn join(
        &mut self,
        env: &mut Env<'_>,
        terms: Terms,
        tries: bool,
        keep: Option<Keep>,
    ) -> Result<Joined, NoLease> {
        self.keep = keep;
        if self.is_idle()
            && let Some(taken) = self.reuse(env, terms)
        {
            return Ok(Joined::Taken(taken));
        }
        let leads = matches!(self.phase, Phase::Idle) && self.queue.is_empty();
        if let (true, Some(opening)) = (leads, &mut self.opening) {
            opening.hurry(&mut env.effects.wake);
        }
        if tries && (!leads || self.is_withdrawing()) {
            let soon = self.opens_soon(env);
            return Err(if soon { NoLease::Releasing } else { NoLease::Busy });
        }
        let ticket = env.numbers.next();
        self.queue.join(ticket, terms);
        Ok(Joined::InLine((ticket, leads.then(|| self.lead(env, ticket, terms, tries)))))
    }

    fn lead(&mut self, env: &Env<'_>, lead: Ticket, terms: Terms, tries: bool) -> Lead {
        let (id, sent_at, keeps) = (env.known(lead), env.now, self.keeps());
        let claim_window = env.timing.claim_window(terms.ttl);
        let heartbeat = (!tries).then(|| Heartbeat { number: env.numbers.change(), claim_window });
        self.phase = Phase::Asking(Asking {
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
            Phase::Idle => self.is_withdrawing(),
            _ => false,
        };
        self.queue.is_empty() && is_ending
    }

    /// A task looks where it stands, and is woken by `waker` when that changes.
    pub(crate) fn poll(
        &mut self,
        env: &mut Env<'_>,
        ticket: Ticket,
        waker: &Waker,
    ) -> Progress<Taken> {
        if let Some(error) = self.queue.failure(ticket) {
            return Poll::Ready(Err(NoLease::Failed(error)));
        }
        if !self.queue.has(ticket) {
            return Poll::Ready(Err(NoLease::Dismissed));
        }
        self.attend(env, ticket);
        if let Some(taken) = self.take(env, ticket) {
            return Poll::Ready(Ok(taken));
        }
        self.queue.awaits(ticket, waker, &mut env.effects.discarded);
        Poll::Pending
    }

    /// The first task is polled before its answer. If the answer takes longer than the pause
    /// between two heartbeats, the runtime keeps the place.
    fn attend(&mut self, env: &mut Env<'_>, ticket: Ticket) {
        let Phase::Asking(asking) = &mut self.phase else { return };
        if asking.lead() != ticket {
            return;
        }
        asking.polled_at = env.now;
        if asking.calls_at.is_some() {
            return;
        }
        // One that only tries has no place, unless others wait behind it.
        let is_wanted = asking.heartbeat.is_some() || self.queue.len() > 1;
        if is_wanted {
            self.keep_place(env);
        } else {
            asking.calls_at = Some(env.next_heartbeat(env.now, asking.terms.ttl));
        }
        if let Phase::Place(place) = &mut self.phase {
            env.effects.send = Some(Outgoing::Heartbeat(Box::new(place.beat(env, self.begun))));
        }
    }

    /// The runtime keeps the place of the first task, whose own command is in flight.
    pub(super) fn keep_place(&mut self, env: &Env<'_>) {
        if let Phase::Asking(asking) = &self.phase {
            let mut place = Place::asked_for(env, asking);
            place.unanswered.on_send();
            self.phase = Phase::Place(Box::new(place));
        }
    }

    /// A task takes the token that it was offered, if it was. If it comes too late, the turn ends.
    fn take(&mut self, env: &mut Env<'_>, ticket: Ticket) -> Option<Taken> {
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
        answer: Answer<AcquireAnswer>,
    ) -> Progress<Taken> {
        let instead = match &answer.result {
            _ if !tries => Poll::Pending,
            Ok(AcquireAnswer::Busy { keeps: true, .. }) => Poll::Ready(Err(NoLease::Kept)),
            Ok(AcquireAnswer::Busy { .. }) => Poll::Ready(Err(NoLease::Busy)),
            Ok(_) => Poll::Ready(Err(NoLease::Failed(too_late()))),
            Err(error) => Poll::Ready(Err(NoLease::Failed(error.clone()))),
        };
        match (&self.phase, &answer.result) {
            (Phase::Asking(asking), Ok(AcquireAnswer::Granted(granted)))
                if asking.lead() == lead =>
            {
                let grant =
                    Grant::from_answer(env.name, asking.id, asking.terms, answer.sent_at, granted);
                let is_late = grant.remaining(env.now).is_zero();
                // It is no news if it was ended by force while its answer was on its way.
                if is_late || !(env.rules.is_news)(grant.first(), self.begun) {
                    self.keep_place(env);
                }
                if !is_late {
                    self.begin(env, grant, granted.contended, None);
                }
            }
            (phase, result) => {
                let id = env.known(lead);
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
            // It was woken for this, and nothing else was.
            env.effects.discarded.append(&mut env.effects.wake);
            return Poll::Ready(Ok(taken));
        }
        if tries {
            self.leave(env, lead);
        }
        instead
    }
}
