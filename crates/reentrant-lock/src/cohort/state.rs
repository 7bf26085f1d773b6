use leasehold_core::{AcquisitionId, FenceToken, Instant, StoreError};
use leasehold_watchdog::Watch;

use crate::closing::rest;

use super::{
    moment::Moment,
    phase::Phase,
    queue::{Discarded, LocalQueue, Ticket},
    unheard,
};

/// The tasks of one runtime that want one name, and what the runtime has of it in Redis.
///
/// A cohort lock: global between runtimes, local within one (Dice, Marathe and Shavit, "Lock
/// Cohorting", 2012). Redis knows runtimes, memory knows tasks. Every method is an event:
/// it changes the state and says in [`Effects`] what is to be done outside. Whenever a task waits,
/// something is under way for it: a command, a heartbeat that falls due, or a turn.
#[derive(Debug)]
pub(crate) struct Cohort {
    pub(super) queue: LocalQueue,
    pub(super) phase: Phase,
    /// The first token of the last turn begun.
    pub(super) begun: Option<FenceToken>,
}

impl Cohort {
    pub(crate) fn new() -> Self {
        Self { queue: LocalQueue::default(), phase: Phase::Idle, begun: None }
    }

    /// Whether nothing is left to be remembered.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.queue.is_done()
    }

    /// The wakers that are not needed any more, to be dropped outside of every lock.
    pub(crate) fn take_discarded(&mut self) -> Discarded {
        self.queue.take_discarded()
    }

    /// How many tasks wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// When to look next, if nothing happens before.
    pub(crate) fn look_at(&self, m: &Moment<'_>) -> Option<Instant> {
        match &self.phase {
            Phase::Place(place) => place.due(m),
            Phase::Asking(asking) => Some(asking.look_at(m)),
            Phase::Turn(turn) => turn.stale_at(m),
            Phase::Ending(ending) => ending.look_at(m),
            Phase::Idle => None,
        }
    }

    /// Whether the end of a turn is still to be answered.
    pub(crate) fn is_ending(&self, id: AcquisitionId, first: FenceToken) -> bool {
        matches!(&self.phase, Phase::Ending(ending)
            if ending.turn.grant.id() == id && ending.turn.grant.first() == first)
    }

    /// What watches the turn of a grant, if that is the present one.
    pub(crate) fn watch_of(&self, id: AcquisitionId, first: FenceToken) -> Option<Watch> {
        match &self.phase {
            Phase::Turn(turn) if turn.grant.id() == id && turn.grant.first() == first => turn.watch,
            _ => None,
        }
    }

    /// What watches the present turn, if there is one.
    pub(crate) fn watch(&self) -> Option<Watch> {
        match &self.phase {
            Phase::Turn(turn) => turn.watch,
            _ => None,
        }
    }

    /// How many tasks and runtimes stand before whoever came last.
    pub(crate) fn length(&self) -> u64 {
        let ahead = match &self.phase {
            Phase::Place(place) => place.ahead.unwrap_or(0),
            _ => 0,
        };
        self.queue.len().saturating_sub(1) as u64 + ahead
    }

    /// How many tasks stand before one, and how many runtimes before this one.
    pub(crate) fn position(&self, ticket: Ticket) -> (usize, Option<u64>) {
        let ahead = match &self.phase {
            Phase::Place(place) => place.ahead,
            _ => None,
        };
        (self.queue.before(ticket), ahead)
    }

    /// Whether somebody is known to have the lock, by what the server said or by the present turn.
    pub(crate) fn is_known_taken(&self) -> bool {
        match &self.phase {
            Phase::Place(place) => place.ahead.is_some(),
            Phase::Turn(_) | Phase::Ending(_) => true,
            Phase::Idle | Phase::Asking(_) => false,
        }
    }

    /// Whether this runtime itself has the lock at `now`: a task holds it or is about to take it, or
    /// it was given back to stay closed.
    pub(crate) fn is_held_here(&self, now: Instant) -> bool {
        match &self.phase {
            Phase::Turn(_) => true,
            Phase::Ending(ending) => rest(ending.closed_until, now).is_some(),
            Phase::Idle | Phase::Asking(_) | Phase::Place(_) => false,
        }
    }

    /// Whether the server said last that another runtime has the lock.
    pub(crate) fn is_told_taken(&self) -> bool {
        matches!(&self.phase, Phase::Place(place) if place.ahead.is_some())
    }

    /// Why the runtime could not ask: the last command failed, or none was answered.
    pub(crate) fn last_error(&self) -> Option<StoreError> {
        match &self.phase {
            Phase::Place(place) => {
                place.last_error.clone().or_else(|| place.is_unheard().then(unheard))
            }
            Phase::Asking(_) => Some(unheard()),
            Phase::Ending(ending) => ending.repeated.then(unheard),
            Phase::Turn(_) | Phase::Idle => None,
        }
    }
}
