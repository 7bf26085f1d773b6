use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, Instant, Terms,
    lease::HeardEnd,
    metric::{KeptOutcome, ReleaseVia},
};
use leasehold_watchdog::Watch;
use tokio::sync::Notify;

use crate::{durations::PLACE_PAUSE, error::QueuePosition, timing::closed_for};

use super::{
    env::{Beat, Env, NextPlace, TurnId, TurnRelease, earlier},
    local_queue::{LocalQueue, Ticket},
    place::{Failing, QueuedPlace},
    turn::{Keep, Turn},
    withdrawals::Withdrawals,
};

/// The tasks of one runtime that want one name, and what the runtime has of it in Redis.
///
/// A cohort lock: global between runtimes, local within one (Dice, Marathe and Shavit, "Lock
/// Cohorting", 2012). Redis knows runtimes, memory knows tasks. Whenever a task waits, something is
/// under way for it: a command, a heartbeat that falls due, or a turn.
///
/// # Calling contract
///
/// A state neither reads a clock nor sends. The caller holds the lock of the name, and
///
/// 1. applies one event at a time:
///    - what a task does: [`join`](Self::join), [`poll`](Self::poll), [`leave`](Self::leave),
///      [`on_watch`](Self::on_watch), [`on_release`](Self::on_release),
///      [`awaits_release`](Self::awaits_release);
///    - how a withdrawal is sent, to [`withdrawals`](Self::withdrawals): that it is about to be
///      before the lock is let go of, that it was refused, and that it is over;
///    - how a release is sent: [`on_release_send`](Self::on_release_send),
///      [`on_release_left`](Self::on_release_left), [`on_release_given_up`](Self::on_release_given_up);
///    - what the store answers: [`on_first_reply`](Self::on_first_reply),
///      [`on_reply`](Self::on_reply), [`on_confirmation`](Self::on_confirmation),
///      [`on_release_reply`](Self::on_release_reply);
///    - what the store pushes: [`on_grant`](Self::on_grant), [`on_wanted`](Self::on_wanted),
///      [`on_force_released`](Self::on_force_released);
///    - what happens to the runtime: [`on_timer`](Self::on_timer), [`on_lost`](Self::on_lost),
///      [`on_lost_messages`](Self::on_lost_messages), [`on_close`](Self::on_close),
///      [`end_idle`](Self::end_idle);
/// 2. lets go of the lock, and only then carries out the [`Effects`](super::Effects) that the event
///    has left in [`Env::effects`]: wakers may call back;
/// 3. sets a timer for [`look_at`](Self::look_at), and forgets the state when it
///    [is done](Self::is_done).
///
/// # States and events
///
/// An empty field changes nothing. *Withdrawn* means that the id is taken back on the server. In
/// every state a withdrawal may wait for its answer: in `Idle`, tries wait for it.
///
/// | event | `Idle` | `Asking` | `Place` | `Turn` | `Releasing` |
/// |---|---|---|---|---|---|
/// | a task joins | → `Asking`: the task sends; a try first waits for withdrawals | it waits | it waits | it waits; an idle turn: it takes the next token, or → `Releasing` | it waits |
/// | reply: granted | withdrawn | → `Turn`: offered to the first task | → `Turn` | known; a newer grant is withdrawn | |
/// | reply: not yet | | → `Place` | next heartbeat | | |
/// | reply: failed | | → `Place` | next heartbeat | | |
/// | reply: too few acknowledged it | | → `Place` of a fresh id, withdrawn | → `Place` of a fresh id, withdrawn | | |
/// | reply: refused | | → `Idle`: all fail | → `Idle`: all fail | | |
/// | a try: not granted, or failed | | → `Idle`; → `Place` if others wait | | | |
/// | push of a grant | withdrawn | → `Turn` | → `Turn`; confirmed first if little belief is left, or if acknowledgements are asked for | | → `Turn`, of the next id |
/// | a task polls | | → `Place` when the answer takes long | | the offered task takes its token; too late: → `Releasing` | |
/// | a task leaves, others wait | | the one that asked: → `Place` | | the offered one: as if it released | |
/// | the last task leaves | | → `Idle`, withdrawn | → `Idle`, withdrawn | an open offer: → `Releasing` | |
/// | a lease is released | | | | offered to the next task, kept idle, or → `Releasing` | |
/// | push: another runtime wants the lock | remembered | remembered | remembered | an idle turn: → `Releasing`; else it counts as contended | remembered |
/// | release answered | | | | | → `Place` or `Turn` of the next id; → `Idle` if no task waits; refused: all fail |
/// | timer | | a task that is not polled leaves | a heartbeat is sent | a stale offer, or the end of an idle turn: → `Releasing` | a copy is sent after lost messages, or when the holder waits too long; tasks that came later wait too long: → `Place` of a fresh id, withdrawn |
/// | the turn is lost | | | | → `Place` under a fresh id, or `Idle`; by `max_hold`, or expired while tasks wait: → `Releasing` | |
/// | messages were lost | | asks again soon | asks again soon | | a copy is sent soon |
/// | close | | → `Idle`, withdrawn | → `Idle`, withdrawn | an open offer, or an idle turn: → `Releasing` | |
#[derive(Debug, Default)]
pub(crate) struct NameState {
    pub(super) queue: LocalQueue,
    pub(super) phase: Phase,
    /// What the runtime takes back; the engine tells it how each withdrawal goes.
    pub(crate) withdrawals: Withdrawals,
    /// The first token of the last turn begun.
    pub(super) begun: Option<Fence>,
    /// Whether turns are kept when no task holds them, as the latest task asked.
    pub(super) keep: Option<Keep>,
    /// The last turn that another runtime wanted and that was not the present one.
    pub(super) wanted: Option<Box<TurnId>>,
}

impl NameState {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.queue.is_done() && self.withdrawals.is_empty()
    }

    /// Whether the turn is kept although no task holds it or waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle_ends_at().is_some()
    }

    pub(super) fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    /// When an idle turn ends by itself.
    pub(super) fn idle_ends_at(&self) -> Option<Instant> {
        self.turn()?.idle_ends_at()
    }

    /// Whether the next acquisition says that its lease is kept.
    pub(super) fn keeps(&self) -> bool {
        self.keep.is_some_and(|keep| keep.is_worth_it)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn look_at(&self, env: &Env<'_>) -> Option<Instant> {
        match &self.phase {
            Phase::Place(place) => Some(place.next_at),
            Phase::Asking(asking) => Some(asking.look_at(env)),
            Phase::Turn(turn) => turn.stale_at(env).or_else(|| turn.idle_ends_at()),
            Phase::Releasing(releasing) => {
                let overdue_at = releasing.overdue_at(env).filter(|_| !self.queue.is_empty());
                let all = [overdue_at, releasing.unattended_at(env), releasing.asks_soon];
                all.into_iter().flatten().min()
            }
            Phase::Idle => None,
        }
    }

    /// Whether an acquisition is what the runtime has of the lock, or asks for.
    pub(crate) fn is_about(&self, id: AcquisitionId) -> bool {
        match &self.phase {
            Phase::Idle => false,
            Phase::Asking(asking) => asking.id == id,
            Phase::Place(place) => place.id == id,
            Phase::Turn(turn) => turn.grant.id() == id,
            Phase::Releasing(releasing) => {
                let next = releasing.next.map(|next| next.id);
                releasing.turn.grant.id() == id || next == Some(id)
            }
        }
    }

    /// Whether a task that came at `came` may read with those of this runtime who read.
    pub(crate) fn admits(&self, now: Instant, came: Instant) -> bool {
        self.turn().is_some_and(|turn| turn.admits(now, came))
    }

    /// Whether a turn is being given back, or its acquisition withdrawn.
    pub(crate) fn is_ending(&self, turn: TurnId) -> bool {
        let is_releasing =
            matches!(&self.phase, Phase::Releasing(releasing) if releasing.turn.id() == turn);
        is_releasing || self.withdrawals.has(turn.id)
    }

    pub(crate) fn watch(&self) -> Option<Watch> {
        self.turn()?.watch
    }

    fn place(&self) -> Option<&QueuedPlace> {
        match &self.phase {
            Phase::Place(place) => Some(place),
            _ => None,
        }
    }

    /// How many runtimes stand before this one, if the server said so last.
    fn ahead(&self) -> Option<u64> {
        self.place()?.ahead
    }

    /// How many tasks and runtimes stand before the task that came last.
    pub(crate) fn length(&self) -> u64 {
        self.queue.len().saturating_sub(1) as u64 + self.ahead().unwrap_or(0)
    }

    pub(crate) fn position(&self, ticket: Ticket) -> QueuePosition {
        QueuePosition { runtimes: self.ahead(), tasks: self.queue.before(ticket) }
    }

    /// When the lease of another runtime ends, as the server said.
    pub(crate) fn heard(&self) -> Option<HeardEnd> {
        self.place()?.heard
    }

    /// Whether the lock is known to be held, by what the server said or by the present turn.
    pub(crate) fn is_known_held(&self) -> bool {
        let is_here = matches!(self.phase, Phase::Turn(_) | Phase::Releasing(_));
        self.is_held_elsewhere() || is_here && !self.is_idle()
    }

    /// Whether a task of this runtime has the lock or is about to take it, or gave it back to stay
    /// closed.
    pub(crate) fn is_held_here(&self, now: Instant) -> bool {
        match &self.phase {
            Phase::Turn(_) => !self.is_idle(),
            Phase::Releasing(releasing) => closed_for(releasing.closed_until, now).is_some(),
            Phase::Idle | Phase::Asking(_) | Phase::Place(_) => false,
        }
    }

    /// Whether a call can wait for the lock, or take it, while the server is away: this runtime has a turn
    /// of it, or keeps it closed.
    pub(crate) fn needs_no_server(&self, now: Instant) -> bool {
        self.is_held_here(now) || matches!(self.phase, Phase::Turn(_))
    }

    /// Whether the server said last that another runtime has the lock.
    pub(crate) fn is_held_elsewhere(&self) -> bool {
        self.ahead().is_some()
    }

    /// Why a call that began at `started` does not know whether others hold the lock.
    pub(crate) fn failing(&self, started: Instant) -> Option<Failing> {
        match &self.phase {
            Phase::Place(place) => place.failing(started),
            Phase::Asking(_) => Some(Failing::unheard(started)),
            Phase::Releasing(releasing) => releasing.is_repeated.then(|| Failing::unheard(started)),
            Phase::Turn(_) | Phase::Idle => None,
        }
    }

    /// Why the last grant here was taken back since `started`, if too few replicas had it.
    pub(crate) fn too_few(&self, started: Instant) -> Option<Failing> {
        self.place()?.too_few(started)
    }

    pub(crate) fn round_trip(&self) -> Duration {
        self.place().map_or(Duration::ZERO, |place| place.round_trip)
    }

    /// Something is due, as the row `timer` of the [states and events](NameState) says; or a task that
    /// asks is to be woken.
    pub(crate) fn on_timer(&mut self, env: &mut Env<'_>) -> Option<Beat> {
        let now = env.now;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
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
                releasing.asks_soon = None;
                env.effects.hurry.push(Arc::clone(&releasing.hurry));
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
                env.effects.release = Some(releasing.command(None));
            }
            _ => {}
        }
        None
    }

    /// Messages may have been lost: a place is asked for again soon, whatever is in flight. That
    /// answer may be older than what was lost, or never come.
    pub(crate) fn on_lost_messages(&mut self, env: &Env<'_>) {
        let soon = env.now + PLACE_PAUSE.mul_f64(env.jitter());
        match &mut self.phase {
            Phase::Place(place) => place.ask_soon(soon),
            // Its task is woken, and when it is polled the runtime asks: one that is never polled
            // is not to keep its place.
            Phase::Asking(asking) => {
                asking.calls_at = Some(earlier(asking.calls_at, soon));
                asking.asks_soon = Some(earlier(asking.asks_soon, soon));
            }
            // A later loss does not put off an earlier one.
            Phase::Releasing(releasing) if releasing.next.is_some() => {
                releasing.asks_soon = Some(earlier(releasing.asks_soon, soon));
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
