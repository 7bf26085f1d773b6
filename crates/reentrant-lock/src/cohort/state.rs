use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Entropy, FenceToken, Instant, LockName, RuntimeId, Secret, Terms, Ttl,
    lease::{Grant, LossReason},
    metric::{ClassMetrics, KeptOutcome, ReleaseVia},
    store::Heartbeat,
};
use leasehold_watchdog::Watch;

use crate::{error::QueuePosition, release::rest, seam::Rules, timing::Timing};

use super::{
    idle::Keep,
    opening::Opening,
    phase::{Phase, Turn},
    place::{Beat, Failing, Place},
    queue::{LocalQueue, Ticket},
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
/// 1. applies one event at a time:
///    - what a task does: [`join`](Self::join), [`poll`](Self::poll), [`leave`](Self::leave),
///      [`on_watch`](Self::on_watch), [`on_release`](Self::on_release),
///      [`is_released`](Self::is_released);
///    - how a withdrawal is sent: [`on_withdrawal`](Self::on_withdrawal) before the lock is let go
///      of, [`is_withdrawal_wanted`](Self::is_withdrawal_wanted),
///      [`on_withdrawal_refused`](Self::on_withdrawal_refused),
///      [`on_withdrawn`](Self::on_withdrawn);
///    - how a release is sent: [`on_release_send`](Self::on_release_send),
///      [`has_lost_messages`](Self::has_lost_messages), [`on_release_left`](Self::on_release_left),
///      [`on_release_given_up`](Self::on_release_given_up);
///    - what the store answers: [`on_first_reply`](Self::on_first_reply),
///      [`on_reply`](Self::on_reply), [`on_confirmation`](Self::on_confirmation),
///      [`on_release_reply`](Self::on_release_reply);
///    - what the store pushes: [`on_grant`](Self::on_grant), [`on_wanted`](Self::on_wanted),
///      [`on_force_released`](Self::on_force_released);
///    - what happens to the runtime: [`on_timer`](Self::on_timer), [`on_lost`](Self::on_lost),
///      [`on_lost_messages`](Self::on_lost_messages), [`on_close`](Self::on_close),
///      [`on_too_many_kept`](Self::on_too_many_kept);
/// 2. lets go of the lock, and only then carries out the [`Effects`](super::Effects) that the event
///    has left in [`Env::effects`]: wakers may call back;
/// 3. sets a timer for [`look_at`](Self::look_at), and forgets the cohort when it
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
pub(crate) struct Cohort {
    pub(super) queue: LocalQueue,
    pub(super) phase: Phase,
    // Boxed, and mostly nothing: very many names are held.
    pub(super) opening: Option<Box<Opening>>,
    /// The first token of the last turn begun.
    pub(super) begun: Option<FenceToken>,
    /// Whether turns are kept when no task holds them, as the latest task asked.
    pub(super) keep: Option<Keep>,
    /// The last turn that another runtime wanted and that was not the present one.
    pub(super) wanted: Option<Box<TurnId>>,
}

impl Cohort {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.queue.is_done() && self.opening.is_none()
    }

    /// Whether the turn is kept although no task holds it or waits for it.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle_ends_at().is_some()
    }

    /// Whether the task that came last lets turns of this name be kept.
    pub(crate) fn may_be_kept(&self) -> bool {
        self.keep.is_some()
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
        let due = match &self.phase {
            Phase::Place(place) => Some(place.next_at),
            Phase::Asking(asking) => Some(asking.look_at(env)),
            Phase::Turn(turn) => turn.stale_at(env).or_else(|| turn.idle_ends_at()),
            Phase::Releasing(releasing) => {
                let overdue_at = releasing.overdue_at(env).filter(|_| !self.queue.is_empty());
                let all = [overdue_at, releasing.unattended_at(env), releasing.asks_soon];
                all.into_iter().flatten().min()
            }
            Phase::Idle => None,
        };
        due.into_iter().chain(self.watched_until()).min()
    }

    /// Whether a turn is being given back, or its acquisition withdrawn.
    pub(crate) fn is_ending(&self, turn: TurnId) -> bool {
        let is_releasing =
            matches!(&self.phase, Phase::Releasing(releasing) if releasing.turn.id() == turn);
        is_releasing || self.opening.as_ref().is_some_and(|opening| opening.withdraws(turn.id))
    }

    pub(super) fn is_withdrawing(&self) -> bool {
        self.opening.as_ref().is_some_and(|opening| opening.is_withdrawing())
    }

    pub(super) fn watched_until(&self) -> Option<Instant> {
        self.opening.as_ref()?.watched_until
    }

    pub(crate) fn watch(&self) -> Option<Watch> {
        self.turn()?.watch
    }

    fn place(&self) -> Option<&Place> {
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
            Phase::Releasing(releasing) => rest(releasing.closed_until, now).is_some(),
            Phase::Idle | Phase::Asking(_) | Phase::Place(_) => false,
        }
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
}

pub(super) fn wake_tries(opening: &mut Option<Box<Opening>>, wake: &mut Vec<Waker>) {
    if opening.as_mut().is_some_and(|opening| opening.wake(wake)) {
        *opening = None;
    }
}

/// What a rule may read, and the effects that it asks for.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    pub(crate) name: &'a LockName,
    pub(crate) now: Instant,
    /// Where jitter comes from.
    pub(crate) entropy: &'a dyn Entropy,
    pub(crate) numbers: &'a Numbers,
    pub(crate) timing: &'a Timing,
    pub(crate) rules: &'a Rules,
    pub(crate) effects: Effects,
}

impl Env<'_> {
    /// An id that was never used, for an acquisition of this lock.
    pub(super) fn id(&self) -> AcquisitionId {
        self.known(self.numbers.next())
    }

    /// The id of an acquisition of this lock, by its number.
    pub(super) fn known(&self, number: u64) -> AcquisitionId {
        self.numbers.known(self.name, number)
    }

    /// A fraction in `[0, 1)`.
    pub(super) fn jitter(&self) -> f64 {
        self.entropy.fraction()
    }

    /// When the heartbeat after one of `sent_at` is due: three may be lost in a claim window.
    pub(super) fn next_heartbeat(&self, sent_at: Instant, ttl: Ttl) -> Instant {
        let pause = (self.timing.claim_window(ttl) / 4).mul_f64(1.0 - self.jitter() / 4.0);
        sent_at + pause.max(Timing::SHORTEST_PAUSE)
    }
}

/// Where the numbers of a runtime come from: none is given twice.
#[derive(Debug)]
pub(crate) struct Numbers {
    runtime_id: RuntimeId,
    secret: Secret,
    acquisitions: AtomicU64,
    changes: AtomicU64,
}

impl Numbers {
    pub(crate) fn new(runtime_id: RuntimeId, secret: Secret) -> Self {
        let (acquisitions, changes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { runtime_id, secret, acquisitions, changes }
    }

    pub(crate) fn runtime_id(&self) -> RuntimeId {
        self.runtime_id
    }

    /// A number that was never used, for an acquisition or a lease.
    pub(crate) fn next(&self) -> u64 {
        self.acquisitions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The id of an acquisition, as the store has it.
    pub(crate) fn known(&self, lock: &LockName, number: u64) -> AcquisitionId {
        self.secret.sign(lock, AcquisitionId::new(self.runtime_id, number))
    }

    /// Whether an id with this word was made here, for this lock.
    pub(crate) fn proves(&self, lock: &LockName, id: AcquisitionId) -> bool {
        id.runtime() == self.runtime_id && self.secret.proves(lock, id)
    }

    /// The number of a heartbeat, or of a change of holds: greater than those before.
    pub(crate) fn change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What is to be done once a rule has been applied, outside of every lock.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) wake: Vec<Waker>,
    /// To drop a waker may drop a task, and whatever it has of this very name.
    pub(crate) discarded: Vec<Waker>,
    pub(crate) send: Option<Outgoing>,
    /// Acquisitions to withdraw, whatever they have by now.
    pub(crate) withdraw: Vec<(AcquisitionId, Ttl)>,
    /// What watched a turn that is over.
    pub(crate) forget: Option<Watch>,
    /// Why the holder of a lease of that turn has lost it.
    pub(crate) lost: Option<LossReason>,
    pub(crate) ended: Option<Ended>,
    pub(crate) kept: Option<KeptOutcome>,
    /// Where commands and leases count; `None` for the class of the task that came first.
    pub(crate) metrics: Option<Arc<ClassMetrics>>,
}

impl Effects {
    pub(crate) fn sends(&self) -> bool {
        self.send.is_some() || !self.withdraw.is_empty()
    }
}

/// A turn that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) leases: u32,
    /// Whether another runtime wanted the lock, before the turn or in it.
    pub(crate) was_wanted: bool,
}

#[derive(Debug)]
pub(crate) enum Outgoing {
    /// End the turn on the server that is being given back.
    Release(TurnRelease),
    /// Confirm a grant by a renewal, before any task believes in it.
    Confirm(Box<Grant>),
    Heartbeat(Box<Beat>),
}

/// A turn, as commands name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// ADR 0008
pub(crate) struct TurnId {
    pub(crate) id: AcquisitionId,
    pub(crate) first: FenceToken,
}

impl TurnId {
    pub(crate) fn of(grant: &Grant) -> Self {
        Self { id: grant.id(), first: grant.first() }
    }
}

/// The end of a turn on the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnRelease {
    pub(crate) turn: TurnId,
    pub(crate) ttl: Ttl,
    /// Until when the lock stays closed after the release (`min_hold`).
    pub(crate) closed_until: Option<Instant>,
    /// As which release it counts; `None` where it counts as nothing, or was counted.
    pub(crate) via: Option<ReleaseVia>,
}

/// The acquisition with which a runtime queues anew in the step that ends its turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextPlace {
    pub(crate) id: AcquisitionId,
    pub(crate) terms: Terms,
    pub(crate) keeps: bool,
    pub(crate) heartbeat: Heartbeat,
    /// When the first copy of the release was sent.
    pub(crate) sent_at: Instant,
}
