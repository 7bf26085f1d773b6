use std::time::Duration;

use leasehold_core::{Instant, metric::KeptOutcome};

use super::{
    phase::Phase,
    place::Beat,
    state::{Cohort, Env, Outgoing, wake_tries},
};

/// How soon a place is asked for again after messages may have been lost. With the pause between
/// two rounds of heartbeats, these are the 50 ms that are promised.
const SOON: Duration = Duration::from_millis(30);

impl Cohort {
    /// Something is due, as the row `timer` of the [states and events](Cohort) says; or a task that
    /// asks or tries is to be woken.
    pub(crate) fn on_timer(&mut self, env: &mut Env<'_>) -> Option<Beat> {
        let now = env.now;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.watched_until()) {
            wake_tries(&mut self.opening, &mut env.effects.wake);
        }
        match &mut self.phase {
            Phase::Place(place) if place.is_due(env) => {
                // The task for whose ttl it was asked may be gone.
                place.terms = self.queue.first().map_or(place.terms, |(_, terms)| terms);
                return Some(place.beat(env, self.begun));
            }
            Phase::Asking(asking) if asking.unattended_at(env) <= now => {
                let lead = asking.lead();
                self.leave(env, lead);
            }
            Phase::Asking(asking) if is_due(asking.calls_at) => {
                asking.calls_at = None;
                env.effects.wake.extend(self.queue.waker(asking.lead()));
            }
            Phase::Turn(turn) if is_due(turn.stale_at(env)) => {
                // Its task is sent away, and the turn ends.
                if let Some(offer) = turn.open_offer() {
                    env.effects.wake.extend(self.queue.waker(offer.ticket));
                    self.queue.leave(offer.ticket, &mut env.effects.discarded);
                    self.release(env, None, None);
                }
            }
            Phase::Turn(turn) if is_due(turn.idle_ends_at()) => {
                self.end_idle(env, KeptOutcome::Lapsed);
            }
            Phase::Releasing(releasing) if is_due(releasing.asks_soon) => {
                (releasing.asks_soon, releasing.asks_now) = (None, true);
                env.effects.wake.extend(releasing.sender_waker.take());
            }
            Phase::Releasing(releasing)
                if !self.queue.is_empty() && is_due(releasing.overdue_at(env)) =>
            {
                // Whether it was executed or not, its turn is withdrawn, and the runtime asks anew.
                let turn = releasing.turn.id();
                self.on_release_given_up(env, turn);
                if let Phase::Place(place) = &mut self.phase {
                    return Some(place.beat(env, self.begun));
                }
            }
            Phase::Releasing(releasing) if is_due(releasing.unattended_at(env)) => {
                // The holder has waited for a claim window: the runtime sends a copy.
                releasing.attended_since = None;
                env.effects.send = Some(Outgoing::Release(releasing.command(None)));
            }
            _ => {}
        }
        None
    }

    /// Messages may have been lost: a place is asked for again soon, whatever is in flight. That
    /// answer may be older than what was lost, or never come.
    pub(crate) fn on_lost_messages(&mut self, env: &Env<'_>) {
        let soon = env.now + SOON.mul_f64(env.jitter());
        match &mut self.phase {
            Phase::Place(place) => place.ask_soon(soon),
            // Its task is woken, and when it is polled the runtime asks: one that is never polled
            // is not to keep its place.
            Phase::Asking(asking) => {
                asking.calls_at = Some(asking.calls_at.map_or(soon, |at| at.min(soon)));
                asking.asks_soon = Some(asking.asks_soon.map_or(soon, |at| at.min(soon)));
            }
            // A later loss does not put off an earlier one.
            Phase::Releasing(releasing) if releasing.next.is_some() => {
                releasing.asks_soon = Some(releasing.asks_soon.map_or(soon, |at| at.min(soon)));
            }
            Phase::Releasing(_) | Phase::Turn(_) | Phase::Idle => {}
        }
    }

    /// Whether a message may be on its way to it.
    pub(crate) fn expects_messages(&self) -> bool {
        matches!(self.phase, Phase::Place(_) | Phase::Asking(_) | Phase::Releasing(_))
    }

    /// The runtime gives no new leases: all tasks are sent away, and what is not held is given up.
    pub(crate) fn on_close(&mut self, env: &mut Env<'_>) {
        // A lease that goes on is not followed by an idle turn, which no task could take.
        self.keep = None;
        env.effects.wake.extend(self.queue.dismiss());
        match &self.phase {
            Phase::Asking(asking) => {
                env.effects.withdraw.push((asking.id, asking.terms.ttl));
                self.phase = Phase::Idle;
            }
            Phase::Place(place) => {
                env.effects.withdraw.push((place.id, place.terms.ttl));
                self.phase = Phase::Idle;
            }
            Phase::Turn(turn) if turn.open_offer().is_some() || turn.idle_ends_at().is_some() => {
                self.release(env, None, None);
            }
            // A holder goes on; what follows a release is withdrawn when that is answered.
            Phase::Turn(_) | Phase::Releasing(_) | Phase::Idle => {}
        }
    }
}
