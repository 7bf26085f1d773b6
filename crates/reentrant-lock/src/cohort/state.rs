use leasehold_core::{FenceToken, Instant, StoreError};
use leasehold_watchdog::Watch;

use crate::release::rest;

use super::{
    effects::TurnId,
    env::Env,
    phase::Phase,
    queue::{Discarded, LocalQueue, Ticket},
    unheard,
};

/// The tasks of one runtime that want one name, and what the runtime has of it in Redis.
///
/// A cohort lock: global between runtimes, local within one (Dice, Marathe and Shavit, "Lock
/// Cohorting", 2012). Redis knows runtimes, memory knows tasks. Whenever a task waits, something is
/// under way for it: a command, a heartbeat that falls due, or a turn.
///
/// # Calling contract
///
/// A cohort neither reads a clock nor sends. The caller holds the lock of the name, and
///
/// 1. applies one event at a time: what a task does ([`join`](Self::join), [`poll`](Self::poll),
///    [`leave`](Self::leave), [`on_release`](Self::on_release)), what the store answers
///    ([`on_first_reply`](Self::on_first_reply), [`on_reply`](Self::on_reply),
///    [`on_confirmation`](Self::on_confirmation), [`on_release_reply`](Self::on_release_reply)), what it
///    pushes ([`on_grant`](Self::on_grant), [`on_gone`](Self::on_gone)), and what happens to the runtime
///    ([`on_timer`](Self::on_timer), [`on_lost`](Self::on_lost),
///    [`on_lost_messages`](Self::on_lost_messages), [`on_close`](Self::on_close));
/// 2. lets go of the lock, and only then carries out the [`Effects`](super::Effects) of the event and drops
///    what [`take_discarded`](Self::take_discarded) yields: wakers may call back;
/// 3. sets a timer for [`look_at`](Self::look_at), and forgets the cohort when it
///    [is done](Self::is_done).
///
/// # States and events
///
/// An empty field changes nothing. *Withdrawn* means that the id is taken back on the server.
///
/// | event | `Idle` | `Asking` | `Place` | `Turn` | `Releasing` |
/// |---|---|---|---|---|---|
/// | a task joins | → `Asking`: the task sends | it waits | it waits | it waits | it waits |
/// | reply: granted | withdrawn | → `Turn`: offered to the first task | → `Turn` | known; a newer grant is withdrawn | |
/// | reply: not yet | | → `Place` | next heartbeat | | |
/// | reply: failed | | → `Place` | next heartbeat | | |
/// | reply: refused | | → `Idle`: all fail | → `Idle`: all fail | | |
/// | push of a grant | withdrawn | → `Turn` | → `Turn`; confirmed first if little belief is left | | → `Turn`, of the next id |
/// | a task polls | | → `Place` when the answer takes long | | the offered task takes its token | |
/// | the last task leaves | | → `Idle`, withdrawn | → `Idle`, withdrawn | an open offer: → `Releasing` | |
/// | a lease is released | | | | offered to the next task, or → `Releasing` | |
/// | release answered | | | | | → `Place` or `Turn` of the next id; → `Idle` if no task waits |
/// | timer | | a task that is not polled leaves | a heartbeat is sent | a stale offer: → `Releasing` | the runtime sends what its holder leaves |
/// | the turn is lost | | | | → `Place` under a fresh id, or `Idle` | |
/// | messages were lost | | asks again soon | asks again soon | | a copy is sent soon |
/// | close | | → `Idle`, withdrawn | → `Idle`, withdrawn | an open offer: → `Releasing` | |
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
    pub(crate) fn look_at(&self, env: &Env<'_>) -> Option<Instant> {
        match &self.phase {
            Phase::Place(place) => Some(place.due()),
            Phase::Asking(asking) => Some(asking.look_at(env)),
            Phase::Turn(turn) => turn.stale_at(env),
            Phase::Releasing(releasing) => releasing.look_at(env),
            Phase::Idle => None,
        }
    }

    /// Whether a turn is being given back.
    pub(crate) fn is_releasing(&self, turn: TurnId) -> bool {
        matches!(&self.phase, Phase::Releasing(releasing) if releasing.turn.id() == turn)
    }

    /// What watches the present turn, if there is one.
    pub(crate) fn watch(&self) -> Option<Watch> {
        match &self.phase {
            Phase::Turn(turn) => turn.watch,
            _ => None,
        }
    }

    /// How many tasks and runtimes stand before the task that came last.
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

    /// Whether the lock is known to be held, by what the server said or by the present turn.
    pub(crate) fn is_known_held(&self) -> bool {
        match &self.phase {
            Phase::Place(place) => place.ahead.is_some(),
            Phase::Turn(_) | Phase::Releasing(_) => true,
            Phase::Idle | Phase::Asking(_) => false,
        }
    }

    /// Whether this runtime itself has the lock at `now`: a task holds it or is about to take it, or
    /// it was given back to stay closed.
    pub(crate) fn is_held_here(&self, now: Instant) -> bool {
        match &self.phase {
            Phase::Turn(_) => true,
            Phase::Releasing(releasing) => rest(releasing.closed_until, now).is_some(),
            Phase::Idle | Phase::Asking(_) | Phase::Place(_) => false,
        }
    }

    /// Whether the server said last that another runtime has the lock.
    pub(crate) fn is_held_elsewhere(&self) -> bool {
        matches!(&self.phase, Phase::Place(place) if place.ahead.is_some())
    }

    /// Why the runtime could not ask: the last command failed, or none was answered.
    pub(crate) fn last_error(&self) -> Option<StoreError> {
        match &self.phase {
            Phase::Place(place) => {
                place.last_error.clone().or_else(|| place.is_unheard().then(unheard))
            }
            Phase::Asking(_) => Some(unheard()),
            Phase::Releasing(releasing) => releasing.is_repeated.then(unheard),
            Phase::Turn(_) | Phase::Idle => None,
        }
    }
}
