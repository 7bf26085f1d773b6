use std::time::Duration;

use leasehold_core::Instant;

use crate::closing::rest;

use super::{
    effects::{Effects, End, Send},
    moment::Moment,
    phase::{Asking, Ending, Phase},
    place::Beat,
    state::Cohort,
};

/// Within which time a place is asked for again after messages may have been lost. The pause
/// between two rounds of heartbeats comes on top of it; 50 ms in all are promised.
const SOON: Duration = Duration::from_millis(30);

impl Cohort {
    /// Time has come to look: a heartbeat may be due, an offer stale, a first command unattended.
    pub(crate) fn tick(&mut self, m: &Moment<'_>) -> (Option<Beat>, Effects) {
        let mut effects = Effects::default();
        match &mut self.phase {
            Phase::Place(place) if place.is_due(m) => {
                // The task for whose ttl it was asked may be gone.
                place.ttl = self.queue.first().map_or(place.ttl, |(_, ttl)| ttl);
                return (Some(place.beat(m)), effects);
            }
            Phase::Asking(asking) if asking.is_unattended(m) => {
                let lead = asking.lead;
                return (None, self.leave(m, lead));
            }
            Phase::Asking(asking) if asking.calls_at.is_some_and(|at| at <= m.now) => {
                asking.calls_at = None;
                effects.wake = self.queue.waker(asking.lead);
            }
            Phase::Turn(turn) if turn.stale_at(m).is_some_and(|at| at <= m.now) => {
                self.pass_over(m, &mut effects);
            }
            Phase::Ending(ending) if ending.watched_until.is_some_and(|at| at <= m.now) => {
                ending.watched_until = None;
                effects.wake_all = std::mem::take(&mut ending.watchers);
            }
            Phase::Ending(ending) if ending.gap.asks_at.is_some_and(|at| at <= m.now) => {
                effects.wake = ending.gap.look(m.now);
            }
            Phase::Ending(ending) if ending.unattended_at(m).is_some_and(|at| at <= m.now) => {
                // Whoever gave the lease back does not look at the answer: the runtime asks again.
                ending.driven = true;
                effects.send = Some(Send::End(ending.end(m)));
            }
            _ => {}
        }
        (None, effects)
    }

    /// An offer was not taken: its task is sent away, and the turn ends.
    fn pass_over(&mut self, m: &Moment<'_>, effects: &mut Effects) {
        let Phase::Turn(turn) = &mut self.phase else { return };
        let Some(offer) = turn.open_offer() else { return };
        if (m.rules.takes_back)() {
            effects.wake = self.queue.waker(offer.ticket);
            self.queue.leave(offer.ticket);
            self.end(m, None, effects);
        } else if !turn.offer(m, offer.ticket + 1) {
            self.end(m, None, effects);
        }
    }

    /// Messages may have been lost: a place is asked for again soon. A command that is under way
    /// does not count: its answer may be older than what was lost, or never come.
    pub(crate) fn missed_something(&mut self, m: &Moment<'_>) {
        let soon = m.now + SOON.mul_f64(m.jitter);
        match &mut self.phase {
            Phase::Place(place) => place.ask_soon(soon),
            // Its task is woken, and when it is polled the runtime asks: one that is never polled is
            // not to keep its place.
            Phase::Asking(asking) => {
                asking.calls_at = Some(asking.calls_at.map_or(soon, |at| at.min(soon)));
                asking.asks_soon = Some(asking.asks_soon.map_or(soon, |at| at.min(soon)));
            }
            Phase::Ending(ending) if ending.departed && ending.next.is_some() => {
                ending.gap.missed(soon);
            }
            Phase::Ending(_) | Phase::Turn(_) | Phase::Idle => {}
        }
    }

    /// Whether a message may be on its way to it.
    pub(crate) fn expects_messages(&self) -> bool {
        matches!(self.phase, Phase::Place(_) | Phase::Asking(_) | Phase::Ending(_))
    }

    /// The runtime shuts down: everybody is sent away, and what is not held is given up.
    pub(crate) fn close(&mut self, m: &Moment<'_>) -> Effects {
        let mut effects = Effects { wake_all: self.queue.dismiss(), ..Effects::default() };
        match &self.phase {
            Phase::Asking(asking) => {
                effects.withdraw.push((asking.id, asking.ttl));
                self.phase = Phase::Idle;
            }
            Phase::Place(place) => {
                effects.withdraw.push((place.id, place.ttl));
                self.phase = Phase::Idle;
            }
            Phase::Turn(turn) if turn.open_offer().is_some() => self.end(m, None, &mut effects),
            // Its lease is told, or what follows the release is withdrawn when it is answered.
            Phase::Turn(_) | Phase::Ending(_) | Phase::Idle => {}
        }
        effects
    }
}

impl Asking {
    /// When to look next: to call its task, or to go on without it.
    pub(super) fn look_at(&self, m: &Moment<'_>) -> Instant {
        let unattended_at = self.unattended_at(m);
        self.calls_at.map_or(unattended_at, |at| at.min(unattended_at))
    }

    /// When its task has not been polled for so long that nobody will look at the answer.
    fn unattended_at(&self, m: &Moment<'_>) -> Instant {
        (m.rules.attended_from)(self.sent_at, self.polled_at) + m.claim_window(self.ttl)
    }

    fn is_unattended(&self, m: &Moment<'_>) -> bool {
        self.unattended_at(m) <= m.now
    }
}

impl Ending {
    /// When to look next, if there is something to look for.
    pub(super) fn look_at(&self, m: &Moment<'_>) -> Option<Instant> {
        let looks = [self.unattended_at(m), self.watched_until, self.gap.asks_at];
        looks.into_iter().flatten().min()
    }

    /// When nobody has looked at the answer to a release for so long that the runtime sees to it.
    pub(super) fn unattended_at(&self, m: &Moment<'_>) -> Option<Instant> {
        (!self.driven).then(|| self.since + m.claim_window(self.turn.grant.ttl()))
    }

    /// Whether the lock is to stay closed nevertheless.
    pub(super) fn stays_closed(&self, m: &Moment<'_>) -> bool {
        rest(self.closed_until, m.now).is_some()
    }

    /// The release of the turn, once more.
    fn end(&self, m: &Moment<'_>) -> End {
        let grant = &self.turn.grant;
        let (id, first, ttl) = (grant.id(), grant.first(), grant.ttl());
        let (until, next, closed_until) = (m.now + ttl.get(), self.next, self.closed_until);
        End { id, first, ttl, until, next, closed_until, via: None }
    }
}
