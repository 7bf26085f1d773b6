use std::{sync::Arc, task::Waker};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, StoreError, StoreErrorKind, Ttl,
    lease::Grant,
    metric::WakeSource,
    store::{AcquireAnswer, Heartbeat},
};
use leasehold_watchdog::Watch;

use super::{
    Answer,
    grant::grant_of,
    phase::{Asking, Phase},
    place::Place,
    queue::Ticket,
    state::{Cohort, Effects, Env, Outgoing},
    too_late,
};

/// Where a task stands that acquires a lock; `L` is what it gets.
#[derive(Debug)]
pub(crate) enum Progress<L> {
    /// It waits.
    Waits,
    /// It has the lock.
    Granted(L),
    /// Another has the lock, and the task does not wait.
    Busy,
    /// The runtime is just giving back or withdrawing what it has of the lock, and the task does not
    /// wait in line.
    Releasing,
    /// It did not take an offer in time: it may join anew.
    Dismissed,
    /// Waiting does not help.
    Failed(StoreError),
    /// The runtime gives no new leases.
    Closed,
    /// Its owner holds the lock by now.
    HeldByOwner,
    /// The time of the call is over.
    TimedOut,
    /// The server has been silent for too long.
    Unavailable,
}

/// The command that the first task of all sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead {
    pub(crate) id: AcquisitionId,
    /// `None` for one that does not wait.
    pub(crate) heartbeat: Option<Heartbeat>,
    /// When it is sent, at once.
    pub(crate) sent_at: Instant,
}

/// The number of a task that was let in, and the command of the first one.
pub(crate) type Joined<L> = Result<(Ticket, Option<Lead>), Progress<L>>;

/// A token that a task has taken.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) turn: Arc<Grant>,
    pub(crate) token: FenceToken,
    pub(crate) until: Instant,
    pub(crate) watch: Option<Watch>,
    /// Whether it is the first lease of the turn.
    pub(crate) first: bool,
    pub(crate) offered_at: Instant,
    pub(crate) source: Option<WakeSource>,
}

impl<L> Progress<L> {
    /// The same, with another lease.
    pub(crate) fn map<M>(self, lease: impl FnOnce(L) -> M) -> Progress<M> {
        match self {
            Self::Granted(granted) => Progress::Granted(lease(granted)),
            Self::Waits => Progress::Waits,
            Self::Busy => Progress::Busy,
            Self::Releasing => Progress::Releasing,
            Self::Dismissed => Progress::Dismissed,
            Self::Failed(error) => Progress::Failed(error),
            Self::Closed => Progress::Closed,
            Self::HeldByOwner => Progress::HeldByOwner,
            Self::TimedOut => Progress::TimedOut,
            Self::Unavailable => Progress::Unavailable,
        }
    }
}

impl Cohort {
    /// A task comes for a lease of `ttl`; the first of all gets a command to send.
    ///
    /// # Errors
    ///
    /// `Busy` or `Releasing` for a task that only tries, and would have to wait.
    pub(crate) fn join<L>(
        &mut self,
        env: &Env<'_>,
        ttl: Ttl,
        tries: bool,
        waker: &Waker,
    ) -> (Joined<L>, Effects) {
        let mut effects = Effects::default();
        let leads = matches!(self.phase, Phase::Idle) && self.queue.is_empty();
        if leads {
            self.opening.hurry(&mut effects);
        }
        if tries && (!leads || self.opening.is_withdrawing()) {
            let soon = self.opens_soon(env);
            let refused = if soon { Progress::Releasing } else { Progress::Busy };
            return (Err(refused), effects);
        }
        let ticket = env.numbers.id().number();
        self.queue.join(ticket, ttl, waker);
        if leads {
            let lead = self.lead(env, ticket, ttl, tries);
            return (Ok((ticket, Some(lead))), effects);
        }
        (Ok((ticket, None)), effects)
    }

    fn lead(&mut self, env: &Env<'_>, lead: Ticket, ttl: Ttl, tries: bool) -> Lead {
        let (id, sent_at) = (env.numbers.known(lead), env.now);
        let claim_window = env.claim_window(ttl);
        let heartbeat = (!tries).then(|| Heartbeat { number: env.numbers.change(), claim_window });
        self.phase = Phase::Asking(Asking {
            id,
            ttl,
            lead,
            heartbeat: heartbeat.map(|heartbeat| heartbeat.number),
            sent_at,
            polled_at: sent_at,
            calls_at: Some(env.next_heartbeat(sent_at, ttl)),
            asks_soon: None,
        });
        Lead { id, heartbeat, sent_at }
    }

    /// Whether no task waits here, and what the runtime has of the lock is just being given back or
    /// withdrawn.
    fn opens_soon(&self, env: &Env<'_>) -> bool {
        let is_ending = match &self.phase {
            Phase::Releasing(releasing) => !releasing.stays_closed(env),
            Phase::Idle => self.opening.is_withdrawing(),
            _ => false,
        };
        self.queue.is_empty() && is_ending
    }

    /// A task looks where it stands, and is woken by `waker` when that changes.
    pub(crate) fn poll(
        &mut self,
        env: &Env<'_>,
        ticket: Ticket,
        waker: &Waker,
    ) -> (Progress<Taken>, Effects) {
        if let Some(error) = self.queue.failure(ticket) {
            return (Progress::Failed(error), Effects::default());
        }
        if !self.queue.has(ticket) {
            return (Progress::Dismissed, Effects::default());
        }
        let mut effects = Effects::default();
        self.attend(env, ticket, &mut effects);
        if let Some(taken) = self.take(env, ticket, &mut effects) {
            return (Progress::Granted(taken), effects);
        }
        self.queue.awaits(ticket, waker);
        (Progress::Waits, effects)
    }

    /// The first task is polled before its command was answered. When the answer takes longer than
    /// from one heartbeat to the next, the runtime keeps the place meanwhile.
    fn attend(&mut self, env: &Env<'_>, ticket: Ticket, effects: &mut Effects) {
        let Phase::Asking(asking) = &mut self.phase else { return };
        if asking.lead != ticket {
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
            asking.calls_at = Some(env.next_heartbeat(env.now, asking.ttl));
        }
        if let Phase::Place(place) = &mut self.phase {
            effects.send = Some(Outgoing::Heartbeat(Box::new(place.beat(env))));
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

    /// A task takes the token that it was offered, if it was. An offer that comes too late ends the
    /// turn.
    fn take(&mut self, env: &Env<'_>, ticket: Ticket, effects: &mut Effects) -> Option<Taken> {
        let Phase::Turn(turn) = &mut self.phase else { return None };
        let offer = turn.open_offer().filter(|offer| (env.rules.may_take)(offer.ticket, ticket))?;
        if !(env.rules.is_believed)(env.now, turn.until) {
            // The process was away for too long: the turn is over, and its tasks keep their order.
            self.release(None, effects);
            return None;
        }
        let first = turn.leases == 0;
        turn.on_take(env, offer.token);
        let taken = Taken {
            turn: Arc::clone(&turn.grant),
            token: offer.token,
            until: turn.until,
            watch: turn.watch,
            first,
            offered_at: offer.at,
            source: offer.source,
        };
        self.queue.leave(ticket);
        Some(taken)
    }

    /// The watchdog watches the turn from its first lease on.
    pub(crate) fn on_watch(&mut self, watch: Watch) {
        if let Phase::Turn(turn) = &mut self.phase {
            turn.watch = Some(watch);
        }
    }

    /// A task waits no longer: it was cancelled, or its time is over.
    pub(crate) fn leave(&mut self, env: &Env<'_>, ticket: Ticket) -> Effects {
        let mut effects = Effects::default();
        if !self.queue.leave(ticket) {
            return effects;
        }
        match &mut self.phase {
            Phase::Asking(asking) if asking.lead == ticket => {
                self.go_on_without_lead(env, &mut effects);
            }
            Phase::Turn(turn) if turn.open_offer().is_some_and(|offer| offer.ticket == ticket) => {
                self.pass_on(env, &mut effects);
            }
            Phase::Place(_) if self.queue.is_empty() => self.give_up_place(&mut effects),
            // Another task has the turn, or a command in flight settles it.
            _ => {}
        }
        effects
    }

    /// The task that asked by itself is gone, and its command may still be executed.
    fn go_on_without_lead(&mut self, env: &Env<'_>, effects: &mut Effects) {
        let Phase::Asking(asking) = self.phase.take() else { return };
        if self.queue.is_empty() {
            effects.withdraw.push((asking.id, asking.ttl));
            return;
        }
        let place = Place::asked_for(env, &asking).uncertain(true);
        self.phase = Phase::Place(Box::new(place));
    }

    /// No task wants the place any more: it is withdrawn, and its id is dead.
    fn give_up_place(&mut self, effects: &mut Effects) {
        let Phase::Place(place) = &self.phase else { return };
        effects.withdraw.push((place.id, place.ttl));
        self.phase = Phase::Idle;
    }

    /// The command of the first task was answered.
    pub(crate) fn on_first_reply(
        &mut self,
        env: &Env<'_>,
        lead: Ticket,
        tries: bool,
        answer: Answer<AcquireAnswer>,
    ) -> (Progress<Taken>, Effects) {
        let mut effects = Effects::default();
        let asking = match self.phase.take() {
            Phase::Asking(asking) if asking.lead == lead => asking,
            // A push came first, or the runtime keeps the place by now, or went on without the
            // task.
            other => {
                self.phase = other;
                return self.on_late_first_reply(env, lead, tries, answer);
            }
        };
        let id = asking.id;
        let place = || Box::new(Place::asked_for(env, &asking));
        let progress = match answer.result {
            Ok(AcquireAnswer::Granted(granted)) => {
                let grant = grant_of(env, id, asking.ttl, answer.sent_at, &granted);
                let is_late = grant.remaining(env.now).is_zero();
                if is_late && tries {
                    self.queue.leave(lead);
                    effects.withdraw.push((id, asking.ttl));
                    self.ask_anew(env);
                    return (Progress::Failed(too_late()), effects);
                }
                // It is no news if it was ended by force while its answer was on its way.
                if is_late || !(env.rules.is_news)(grant.first(), self.begun) {
                    self.phase = Phase::Place(place());
                }
                if !is_late {
                    self.begin(env, grant, granted.contended, None, &mut effects);
                }
                if let Some(taken) = self.take_unwoken(env, lead, &mut effects) {
                    return (Progress::Granted(taken), effects);
                }
                if tries {
                    effects.add(self.leave(env, lead));
                    return (Progress::Failed(too_late()), effects);
                }
                Progress::Waits
            }
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Queued(_)) if tries => {
                self.queue.leave(lead);
                self.ask_again_as(place());
                Progress::Busy
            }
            Ok(AcquireAnswer::Queued(position)) => {
                let mut place = place();
                place.on_not_yet(env, answer.sent_at, position);
                self.phase = Phase::Place(place);
                Progress::Waits
            }
            Ok(AcquireAnswer::Withdrawn) if tries => {
                self.queue.leave(lead);
                self.ask_anew(env);
                Progress::Failed(too_late())
            }
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) => {
                self.ask_anew(env);
                Progress::Waits
            }
            Err(error) if !error.kind().is_transient() => {
                self.queue.leave(lead);
                self.fail(&error, &mut effects);
                Progress::Failed(error)
            }
            Err(error) if tries => {
                self.queue.leave(lead);
                if error.kind() == StoreErrorKind::Indeterminate {
                    effects.withdraw.push((id, asking.ttl));
                    self.ask_anew(env);
                } else {
                    self.ask_again_as(place());
                }
                Progress::Failed(error)
            }
            Err(error) => {
                let mut place = place();
                place.unanswered.lose(error.kind() == StoreErrorKind::Indeterminate);
                place.on_failure(env, answer.sent_at, error);
                self.phase = Phase::Place(place);
                Progress::Waits
            }
        };
        (progress, effects)
    }

    /// The command of the first task was answered when the runtime had gone on: that counts as the
    /// answer to a heartbeat.
    fn on_late_first_reply(
        &mut self,
        env: &Env<'_>,
        lead: Ticket,
        tries: bool,
        answer: Answer<AcquireAnswer>,
    ) -> (Progress<Taken>, Effects) {
        let id = env.numbers.known(lead);
        let instead = match &answer.result {
            _ if !tries => Progress::Waits,
            Ok(AcquireAnswer::Busy { .. }) => Progress::Busy,
            Ok(_) => Progress::Failed(too_late()),
            Err(error) => Progress::Failed(error.clone()),
        };
        let mut effects = match &mut self.phase {
            // One that only tried was refused; the place is that of the tasks behind it.
            Phase::Place(place) if place.id == id && matches!(instead, Progress::Busy) => {
                place.unanswered.on_reply(&answer.result);
                Effects::default()
            }
            _ => self.on_reply(env, id, answer),
        };
        if let Some(error) = self.queue.failure(lead) {
            return (Progress::Failed(error), effects);
        }
        if let Some(taken) = self.take_unwoken(env, lead, &mut effects) {
            return (Progress::Granted(taken), effects);
        }
        if tries {
            effects.add(self.leave(env, lead));
        }
        (instead, effects)
    }

    /// The first task takes the token that it was just offered; it need not be woken for that.
    fn take_unwoken(
        &mut self,
        env: &Env<'_>,
        lead: Ticket,
        effects: &mut Effects,
    ) -> Option<Taken> {
        let taken = self.take(env, lead, effects)?;
        effects.wake.take().into_iter().for_each(|waker| self.queue.discard(waker));
        Some(taken)
    }

    /// The runtime goes on asking under the same id, if tasks wait.
    fn ask_again_as(&mut self, place: Box<Place>) {
        if !self.queue.is_empty() {
            self.phase = Phase::Place(place);
        }
    }
}
