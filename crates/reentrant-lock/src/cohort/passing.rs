use leasehold_core::{
    AcquisitionId, FenceToken, Instant,
    lease::{Grant, LossReason},
    metric::ReleaseVia,
    store::Heartbeat,
};

use crate::closing::rest;

use super::{
    effects::{Effects, End, NextPlace, Send},
    gap::Gap,
    moment::Moment,
    phase::{Ending, Phase},
    place::Place,
    state::Cohort,
};

/// What becomes of a turn when a lease of it is over.
#[derive(Debug)]
pub(crate) enum AfterLease {
    /// Another task has it, or the runtime ends it.
    Settled,
    /// The runtime ends it, and says what came of that: nobody waits to hear it.
    Driven,
    /// Nobody else wants it: whoever gave it back ends it on the server.
    Ends(End),
    /// It had been over before.
    WasOver,
}

impl Cohort {
    /// The lease with `token` is over, of a turn that could be believed in until `until`; the lock
    /// is to stay closed until `closed_until`, which ends the turn. Of a lease that was `dropped`
    /// nobody waits to hear what became.
    pub(crate) fn released(
        &mut self,
        m: &Moment<'_>,
        token: FenceToken,
        until: Instant,
        closed_until: Option<Instant>,
        dropped: bool,
    ) -> (AfterLease, Effects) {
        let mut effects = Effects::default();
        match &mut self.phase {
            Phase::Turn(turn) if turn.has_lease(token) => turn.until = until,
            _ => return (AfterLease::WasOver, effects),
        }
        if (m.rules.ends_turn)(rest(closed_until, m.now)) {
            self.end(m, closed_until, &mut effects);
        } else {
            self.pass_on(m, &mut effects);
        }
        let after = match &mut effects.send {
            // Whoever drops a guard in a loop is back before the release is sent, and queues with
            // it: see `depart`.
            Some(Send::End(end)) if end.next.is_none() && dropped => {
                end.via = Some(ReleaseVia::Drop);
                AfterLease::Driven
            }
            // Whoever gave the lease back ends the turn, and hears what comes of it.
            Some(Send::End(end)) if end.next.is_none() => AfterLease::Ends(*end),
            _ => AfterLease::Settled,
        };
        if let AfterLease::Ends(_) = after {
            effects.send = None;
            if let Phase::Ending(ending) = &mut self.phase {
                (ending.driven, ending.departed) = (false, true);
            }
        }
        (after, effects)
    }

    /// Whether a task holds the lease with `token`, as far as this runtime knows.
    pub(crate) fn has_lease(&self, token: FenceToken) -> bool {
        matches!(&self.phase, Phase::Turn(turn) if turn.has_lease(token))
    }

    /// The release of an ending turn is about to be sent for the first time; with what the runtime
    /// queues anew in the same step, for tasks that may have come since the lease was over.
    pub(crate) fn depart(
        &mut self,
        m: &Moment<'_>,
        id: AcquisitionId,
        first: FenceToken,
    ) -> Option<NextPlace> {
        let Phase::Ending(ending) = &self.phase else { return None };
        if ending.departed || !self.is_ending(id, first) {
            return ending.next.filter(|_| self.is_ending(id, first));
        }
        // Whoever was to queue with it may have left since.
        let next = (!ending.stays_closed(m)).then(|| self.next_place(m, id)).flatten();
        if let Phase::Ending(ending) = &mut self.phase {
            (ending.departed, ending.next) = (true, next);
        }
        next
    }

    /// With what the runtime queues anew for its tasks, if one waits, after a turn of `old`.
    fn next_place(&self, m: &Moment<'_>, old: AcquisitionId) -> Option<NextPlace> {
        self.queue.first().map(|(_, ttl)| NextPlace {
            id: (m.rules.next_id)(m.numbers.id(), old),
            ttl,
            heartbeat: Heartbeat { number: m.numbers.change(), claim_window: m.claim_window(ttl) },
            sent_at: m.now,
        })
    }

    /// Nobody has the present token any more: the next task is offered the next one, or the turn
    /// ends.
    pub(super) fn pass_on(&mut self, m: &Moment<'_>, effects: &mut Effects) {
        let Phase::Turn(turn) = &mut self.phase else { return };
        match self.queue.first() {
            Some((ticket, ttl)) if !turn.ends_before(m, ttl) && turn.offer(m, ticket) => {
                effects.wake = self.queue.waker(ticket);
            }
            _ => self.end(m, None, effects),
        }
    }

    /// The turn ends; whoever waits here queues behind the others in the same step, or, where the
    /// lock stays closed, once that was answered.
    pub(super) fn end(
        &mut self,
        m: &Moment<'_>,
        closed_until: Option<Instant>,
        effects: &mut Effects,
    ) {
        let Phase::Turn(turn) = self.phase.take() else { return };
        let opens = rest(closed_until, m.now).is_none();
        let next = opens.then(|| self.next_place(m, turn.grant.id())).flatten();
        let (id, first, ttl) = (turn.grant.id(), turn.grant.first(), turn.grant.ttl());
        let until = m.now + ttl.get();
        effects.send =
            Some(Send::End(End { id, first, ttl, until, next, closed_until, via: None }));
        effects.forget = turn.watch;
        effects.ended = Some(turn.leases);
        let (since, driven) = (m.now, true);
        self.phase = Phase::Ending(Box::new(Ending {
            turn,
            next,
            departed: false,
            closed_until,
            repeated: false,
            since,
            driven,
            gap: Gap::default(),
            watchers: Vec::new(),
            watched_until: None,
        }));
    }

    /// The turn is lost: its tasks queue under a fresh id, in the order that they have.
    pub(super) fn lose(
        &mut self,
        m: &Moment<'_>,
        closed_until: Option<Instant>,
        effects: &mut Effects,
    ) {
        let Phase::Turn(turn) = self.phase.take() else { return };
        effects.forget = turn.watch;
        effects.ended = Some(turn.leases);
        // A withdrawal would open a lock that is to stay closed.
        if turn.unanswered.is_any() && rest(closed_until, m.now).is_none() {
            effects.withdraw.push((turn.grant.id(), turn.grant.ttl()));
        }
        self.ask_anew(m);
    }

    /// Whoever waits asks under a fresh id, and at once.
    pub(super) fn ask_at_once(&mut self, m: &Moment<'_>, effects: &mut Effects) {
        self.ask_anew(m);
        if let Phase::Place(place) = &mut self.phase {
            effects.send = Some(Send::Ask(place.beat(m)));
        }
    }

    /// Whoever waits asks under a fresh id.
    pub(super) fn ask_anew(&mut self, m: &Moment<'_>) {
        self.phase = match self.queue.first() {
            None => Phase::Idle,
            Some((_, ttl)) => Phase::Place(Box::new(Place::wanted(m, m.numbers.id(), ttl))),
        };
    }

    /// The server has the turn of a grant no more.
    pub(crate) fn turn_gone(
        &mut self,
        m: &Moment<'_>,
        id: AcquisitionId,
        first: FenceToken,
    ) -> Effects {
        let mut effects = Effects::default();
        if matches!(&self.phase, Phase::Turn(turn)
            if turn.grant.id() == id && turn.grant.first() == first)
        {
            effects.lost = Some(LossReason::Gone);
            self.lose(m, None, &mut effects);
        }
        // Told before the answer that it belongs to, the grant is no news any more.
        self.begun = self.begun.max(Some(first));
        effects
    }

    /// A turn was lost, for whatever reason; so has whoever holds a lease of it.
    pub(crate) fn turn_lost(
        &mut self,
        m: &Moment<'_>,
        turn: &Grant,
        reason: LossReason,
        closed_until: Option<Instant>,
    ) -> Effects {
        let mut effects = Effects::default();
        match &self.phase {
            Phase::Turn(present)
                if present.grant.id() == turn.id() && present.grant.first() == turn.first() => {}
            _ => return effects,
        }
        if reason == LossReason::MaxHold {
            // The server still has it, and its holder may never look at it again.
            self.end(m, closed_until, &mut effects);
            if let Some(Send::End(end)) = &mut effects.send {
                end.via = Some(ReleaseVia::MaxHold);
            }
            return effects;
        }
        effects.lost = Some(reason);
        if reason == LossReason::Expired && !self.queue.is_empty() {
            // The server may still have it, if its answers did not come through: nobody here is to
            // wait for that.
            self.end(m, closed_until, &mut effects);
        } else {
            self.lose(m, closed_until, &mut effects);
        }
        effects
    }
}
