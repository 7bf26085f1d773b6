use std::sync::Arc;

use leasehold_core::{AcquisitionId, Instant, Terms, metric::ReleaseVia};
use tokio::sync::Notify;

use crate::timing::closed_for;

use super::{
    env::{Env, NextPlace, TurnId, TurnRelease, earlier},
    local_queue::Ticket,
    place::QueuedPlace,
    turn::Turn,
};

/// What a runtime has of a name in Redis: one live acquisition at most.
// Very many names have a quiet turn: what is larger is boxed.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Idle,
    /// The first task asks by itself, and awaits the answer.
    Asking(FirstAcquire),
    /// A place in the queue.
    Place(Box<QueuedPlace>),
    /// The lock.
    Turn(Turn),
    /// The lock, which is being given back: no token is offered any more.
    Releasing(Box<Releasing>),
}

/// A first command. The task that sent it awaits its answer.
#[derive(Debug)]
pub(crate) struct FirstAcquire {
    /// Its number is the ticket of the task that sent it.
    pub(super) id: AcquisitionId,
    pub(super) terms: Terms,
    pub(super) heartbeat: Option<u64>,
    /// Whether the lease says that the runtime keeps it.
    pub(super) keeps: bool,
    pub(super) sent_at: Instant,
    pub(super) polled_at: Instant,
    /// When its task is to be woken, to show that it is there; `None` once woken.
    pub(super) calls_at: Option<Instant>,
    /// Messages may have been lost: when the runtime asks again.
    pub(super) asks_soon: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Releasing {
    pub(super) turn: Turn,
    /// What is queued with the release; chosen when it is sent for the first time.
    pub(super) next: Option<NextPlace>,
    /// When the release may have been sent first. From then on `next` is fixed, because all copies
    /// must queue the same id.
    pub(super) sent_at: Option<Instant>,
    /// Whether more than one copy was sent, or a copy failed.
    pub(super) is_repeated: bool,
    pub(super) closed_until: Option<Instant>,
    /// Since when its holder waits for the answer; `None` where the runtime does.
    pub(super) attended_since: Option<Instant>,
    /// Messages may have been lost: when another copy is due, whose answer shows them.
    pub(super) asks_soon: Option<Instant>,
    /// Notified when that copy is due.
    pub(super) hurry: Arc<Notify>,
}

impl Phase {
    pub(super) fn releasing(&mut self, id: TurnId) -> Option<&mut Releasing> {
        match self {
            Self::Releasing(releasing) if releasing.turn.id() == id => Some(releasing),
            _ => None,
        }
    }
}

impl FirstAcquire {
    /// The task that sent it.
    pub(super) fn lead(&self) -> Ticket {
        self.id.number()
    }

    /// Its place, which the runtime keeps from now on.
    pub(super) fn place(&self, env: &Env<'_>) -> QueuedPlace {
        let mut place = QueuedPlace::wanted(env, self.id, self.terms, self.keeps);
        if let Some(number) = self.heartbeat {
            place.remember(number, self.sent_at);
        }
        place.asks_soon = self.asks_soon;
        place.unanswered.on_send();
        place
    }

    /// When to look next: to call its task, or to go on without it.
    pub(super) fn look_at(&self, env: &Env<'_>) -> Instant {
        earlier(self.calls_at, self.unattended_at(env))
    }

    /// When its task has not been polled for so long that it will not look at the answer.
    pub(super) fn unattended_at(&self, env: &Env<'_>) -> Instant {
        (env.rules.attended_from)(self.sent_at, self.polled_at)
            + env.timing.claim_window(self.terms.ttl)
    }
}

impl Releasing {
    /// When tasks wait no longer for the answer to a release that queues no place for them.
    // ADR 0004
    pub(super) fn overdue_at(&self, env: &Env<'_>) -> Option<Instant> {
        let sent_at = self.sent_at.filter(|_| self.next.is_none())?;
        let at = sent_at + env.timing.heartbeat_pause(self.turn.grant.ttl());
        Some(self.closed_until.map_or(at, |closed_until| closed_until.max(at)))
    }

    /// When the runtime sends a copy of its own, if the holder still waits.
    pub(super) fn unattended_at(&self, env: &Env<'_>) -> Option<Instant> {
        self.attended_since.map(|since| since + env.timing.claim_window(self.turn.grant.ttl()))
    }

    pub(super) fn stays_closed(&self, env: &Env<'_>) -> bool {
        closed_for(self.closed_until, env.now).is_some()
    }

    pub(super) fn command(&self, via: Option<ReleaseVia>) -> TurnRelease {
        let (ttl, closed_until) = (self.turn.grant.ttl(), self.closed_until);
        let hurry = Arc::clone(&self.hurry);
        TurnRelease { turn: self.turn.id(), ttl, closed_until, via, hurry }
    }
}
