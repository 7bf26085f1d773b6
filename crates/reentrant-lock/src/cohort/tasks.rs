use std::{sync::Arc, task::Waker};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, StoreError, Ttl, lease::Grant, metric::WakeSource,
    store::Heartbeat,
};
use leasehold_watchdog::Watch;

use super::{
    effects::{Effects, Send},
    moment::Moment,
    phase::{Asking, Phase},
    place::Place,
    queue::Ticket,
    state::Cohort,
    turn::{Offer, Turn},
};

/// How a task came in.
#[derive(Debug)]
pub(crate) enum Joined {
    /// It is the first: it asks by itself, and tells what it hears.
    Leads(Ticket, Lead),
    /// It waits for its turn.
    Waits(Ticket),
    /// It does not want to wait, and the runtime is just giving the lock back.
    Settles,
    /// It did not want to wait.
    Taken,
}

/// What the first task asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lead {
    pub(crate) id: AcquisitionId,
    /// `None` for one that does not wait.
    pub(crate) heartbeat: Option<Heartbeat>,
}

/// What a task finds that waits.
#[derive(Debug)]
pub(crate) enum Standing {
    /// It is not its turn.
    Waits,
    /// It has the token that it was offered.
    Takes(Taken),
    /// It was sent away, and may come in anew.
    Dropped,
    /// Its wait cannot come to anything.
    Failed(StoreError),
}

/// A token in a task's hands.
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

impl Cohort {
    /// A task comes for a lease of `ttl`.
    pub(crate) fn join(
        &mut self,
        m: &Moment<'_>,
        ttl: Ttl,
        tries: bool,
        waker: &Waker,
    ) -> (Joined, Effects) {
        let leads = matches!(self.phase, Phase::Idle) && self.queue.is_empty();
        if tries && !leads {
            let joined = if self.opens_soon(m) { Joined::Settles } else { Joined::Taken };
            return (joined, Effects::default());
        }
        let ticket = m.numbers.id().number();
        self.queue.join(ticket, ttl, waker);
        if leads {
            let lead = self.lead(m, ticket, ttl, tries);
            return (Joined::Leads(ticket, lead), Effects::default());
        }
        let mut effects = Effects::default();
        if (m.rules.may_offer)(true) {
            self.reopen(m, &mut effects);
        }
        (Joined::Waits(ticket), effects)
    }

    fn lead(&mut self, m: &Moment<'_>, lead: Ticket, ttl: Ttl, tries: bool) -> Lead {
        let (id, sent_at) = (m.numbers.known(lead), m.now);
        let heartbeat = (!tries)
            .then(|| Heartbeat { number: m.numbers.change(), claim_window: m.claim_window(ttl) });
        let number = heartbeat.map(|heartbeat| heartbeat.number);
        self.phase = Phase::Asking(Asking {
            id,
            ttl,
            lead,
            heartbeat: number,
            sent_at,
            polled_at: sent_at,
            calls_at: Some(m.next_heartbeat(sent_at, ttl)),
            asks_soon: None,
        });
        Lead { id, heartbeat }
    }

    /// Whether nobody here waits, and the lock is just being given back.
    fn opens_soon(&self, m: &Moment<'_>) -> bool {
        self.queue.is_empty()
            && matches!(&self.phase, Phase::Ending(ending) if !ending.stays_closed(m))
    }

    /// The first task is there, and the answer to its own command is not. When that takes longer
    /// than from one heartbeat to the next, the runtime keeps the place meanwhile.
    fn attend(&mut self, m: &Moment<'_>, ticket: Ticket, effects: &mut Effects) {
        let Phase::Asking(asking) = &mut self.phase else { return };
        if asking.lead != ticket {
            return;
        }
        asking.polled_at = m.now;
        if asking.calls_at.is_some() {
            return;
        }
        // One that only tries has no place, unless others wait behind it.
        let is_wanted = asking.heartbeat.is_some() || self.queue.len() > 1;
        if is_wanted && (m.rules.beats_on)(true) {
            self.keep_place(m);
        } else {
            asking.calls_at = Some(m.next_heartbeat(m.now, asking.ttl));
        }
        if let Phase::Place(place) = &mut self.phase {
            effects.send = Some(Send::Ask(place.beat(m)));
        }
    }

    /// The runtime keeps the place of the first task, whose own command is under way.
    pub(super) fn keep_place(&mut self, m: &Moment<'_>) {
        if let Phase::Asking(asking) = &self.phase {
            let mut place = Place::asked_for(m, asking);
            place.unanswered.sent();
            self.phase = Phase::Place(Box::new(place));
        }
    }

    /// Where a task stands, who is to be woken by `waker` when that changes.
    pub(crate) fn stand(
        &mut self,
        m: &Moment<'_>,
        ticket: Ticket,
        waker: &Waker,
    ) -> (Standing, Effects) {
        if let Some(error) = self.queue.failure(ticket) {
            return (Standing::Failed(error), Effects::default());
        }
        if !self.queue.has(ticket) {
            return (Standing::Dropped, Effects::default());
        }
        let mut effects = Effects::default();
        self.attend(m, ticket, &mut effects);
        let taken = self.take(m, ticket, &mut effects);
        if let Some(taken) = taken {
            return (Standing::Takes(taken), effects);
        }
        self.queue.awaits(ticket, waker);
        (Standing::Waits, effects)
    }

    /// A task takes the token that it was offered, if it was; one step takes an offer, or takes it
    /// back.
    pub(super) fn take(
        &mut self,
        m: &Moment<'_>,
        ticket: Ticket,
        effects: &mut Effects,
    ) -> Option<Taken> {
        let Phase::Turn(turn) = &mut self.phase else { return None };
        let offer = turn.open_offer();
        if !(m.rules.may_take)(offer.map(|offer| offer.ticket), ticket) {
            return None;
        }
        if !(m.rules.is_believed)(m.now, turn.until) {
            // The process was away for too long: the turn is over, and its tasks keep their order.
            self.end(m, None, effects);
            return None;
        }
        let offer = offer.or_else(|| self_offered(turn, m, ticket))?;
        let first = turn.leases == 0;
        turn.taken(m, offer.token);
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

    /// The turn is watched from its first lease on.
    pub(crate) fn watched(&mut self, watch: Watch) {
        if let Phase::Turn(turn) = &mut self.phase {
            turn.watch = Some(watch);
        }
    }

    /// A task waits no longer: it was cancelled, or its patience is over.
    pub(crate) fn leave(&mut self, m: &Moment<'_>, ticket: Ticket) -> Effects {
        let mut effects = Effects::default();
        if !self.queue.leave(ticket) {
            return effects;
        }
        match &mut self.phase {
            Phase::Asking(asking) if asking.lead == ticket => {
                self.go_on_without_lead(m, &mut effects);
            }
            Phase::Turn(turn) if turn.open_offer().is_some_and(|offer| offer.ticket == ticket) => {
                self.pass_on(m, &mut effects);
            }
            Phase::Place(_) if self.queue.is_empty() => self.give_up_place(m, &mut effects),
            // Somebody else's turn, or an answer is awaited that settles it.
            _ => {}
        }
        effects
    }

    /// The task that asked by itself is gone, and its command may still be executed.
    fn go_on_without_lead(&mut self, m: &Moment<'_>, effects: &mut Effects) {
        let Phase::Asking(asking) = self.phase.take() else { return };
        if self.queue.is_empty() {
            effects.withdraw.push((asking.id, asking.ttl));
            return;
        }
        let place = Place::asked_for(m, &asking).uncertain(true);
        self.phase = Phase::Place(Box::new(place));
    }

    /// Nobody wants the place any more: it is withdrawn, and its id is dead.
    fn give_up_place(&mut self, m: &Moment<'_>, effects: &mut Effects) {
        let Phase::Place(place) = &self.phase else { return };
        effects.withdraw.push((place.id, place.ttl));
        if (m.rules.dies_withdrawn)() {
            self.phase = Phase::Idle;
        }
    }

    /// An ending turn goes on: what must never be.
    fn reopen(&mut self, m: &Moment<'_>, effects: &mut Effects) {
        if let Phase::Ending(_) = &self.phase
            && let Phase::Ending(ending) = self.phase.take()
        {
            self.phase = Phase::Turn(ending.turn);
            self.pass_on(m, effects);
        }
    }
}

/// A token out of turn: only a wrong decision gets here.
fn self_offered(turn: &mut Turn, m: &Moment<'_>, ticket: Ticket) -> Option<Offer> {
    turn.offer(m, ticket).then(|| turn.open_offer()).flatten()
}
