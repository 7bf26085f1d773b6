use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use leasehold_core::{
    AcquisitionId, Entropy, Fence, Instant, LockName, Mode, RuntimeId, Secret, StoreError,
    StoreErrorKind, Terms, Ttl,
    lease::{Grant, LossReason},
    metric::{ClassMetrics, KeptOutcome, ReleaseVia},
    store::{Heartbeat, Waiter},
};
use leasehold_watchdog::Watch;
use tokio::sync::Notify;

use crate::{durations::PLACE_PAUSE, seam::Rules, timing::Timing};

/// What a rule may read, and the effects that it asks for.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    pub(crate) name: &'a LockName,
    pub(crate) mode: Mode,
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
        self.acquisition_id(self.numbers.next())
    }

    /// The id of an acquisition of this lock, by its number.
    pub(super) fn acquisition_id(&self, number: u64) -> AcquisitionId {
        self.numbers.acquisition_id(self.name, number)
    }

    /// A fraction in `[0, 1)`.
    pub(super) fn jitter(&self) -> f64 {
        self.entropy.fraction()
    }

    /// When the heartbeat after one of `sent_at` is due: three may be lost in a claim window.
    pub(super) fn next_heartbeat(&self, sent_at: Instant, ttl: Ttl) -> Instant {
        let pause = (self.timing.claim_window(ttl) / 4).mul_f64(1.0 - self.jitter() / 4.0);
        sent_at + pause.max(PLACE_PAUSE)
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
    pub(crate) fn acquisition_id(&self, lock: &LockName, number: u64) -> AcquisitionId {
        self.secret.sign(lock, AcquisitionId::new(self.runtime_id, number))
    }

    /// Whether an id with this word was made here, for this lock.
    pub(crate) fn proves(&self, lock: &LockName, id: AcquisitionId) -> bool {
        id.runtime() == self.runtime_id && self.secret.proves(lock, id)
    }

    /// The number of a heartbeat, or of a change of holds: greater than those before.
    pub(crate) fn next_change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What is to be done once a rule has been applied, outside of every lock.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) wake: Vec<Waker>,
    /// Senders whose next copy is to be sent at once.
    pub(crate) hurry: Vec<Arc<Notify>>,
    /// The tasks that try the lock are to look again.
    pub(crate) wake_tries: Option<Arc<Notify>>,
    /// Wakers to drop outside: dropping one may drop its task, which may lock this name.
    pub(crate) discarded: Vec<Waker>,
    pub(crate) send: Option<Outgoing>,
    /// The end of the turn that is being given back.
    pub(crate) release: Option<TurnRelease>,
    /// Acquisitions to withdraw, whatever they have by now.
    pub(crate) withdraw: Vec<(AcquisitionId, Ttl)>,
    pub(crate) ended: Option<EndedTurn>,
    /// A lease was released, and its holder has nothing to send: how that counts.
    pub(crate) settled: Option<ReleaseVia>,
    /// Why the holder of a lease of that turn has lost it.
    pub(crate) lost: Option<LossReason>,
    pub(crate) kept: Option<KeptOutcome>,
    /// Where commands and leases count; `None` for the class of the task that came first.
    pub(crate) metrics: Option<Arc<ClassMetrics>>,
}

/// A turn that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedTurn {
    /// What watched it.
    pub(crate) watch: Option<Watch>,
    pub(crate) leases: u32,
    /// Whether another runtime wanted the lock, before the turn or in it.
    pub(crate) was_wanted: bool,
    /// Whether the task that came last lets turns of this name be kept.
    pub(crate) may_be_kept: bool,
}

#[derive(Debug)]
pub(crate) enum Outgoing {
    /// Confirm a grant by a renewal, before any task believes in it.
    Confirm(Box<Grant>),
    Heartbeat(Box<Beat>),
}

/// A turn, as commands name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnId {
    pub(crate) id: AcquisitionId,
    pub(crate) first: Fence,
}

impl TurnId {
    pub(crate) fn of(grant: &Grant) -> Self {
        Self { id: grant.id(), first: grant.first() }
    }
}

/// The end of a turn on the server.
#[derive(Debug, Clone)]
pub(crate) struct TurnRelease {
    pub(crate) turn: TurnId,
    pub(crate) ttl: Ttl,
    /// Until when the lock stays closed after the release (`min_hold`).
    pub(crate) closed_until: Option<Instant>,
    /// As which release it counts; `None` where it counts as nothing, or was counted.
    pub(crate) via: Option<ReleaseVia>,
    /// Notified when another copy is to be sent at once.
    pub(crate) hurry: Arc<Notify>,
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

/// A heartbeat of a place, and when it was sent.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) waiter: Waiter,
    pub(crate) sent_at: Instant,
}

/// The answer to a command, and when that was sent.
#[derive(Debug)]
pub(crate) struct TimedAnswer<T> {
    pub(crate) sent_at: Instant,
    pub(crate) result: Result<T, StoreError>,
}

/// The store did not answer for as long as a call waited.
pub(crate) fn unheard() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "the server has not answered in the time of the call",
        "check server and network; give the wait more time than a round trip takes",
    )
}

/// The earlier of two times, of which the first may never come.
pub(crate) fn earlier(one: Option<Instant>, other: Instant) -> Instant {
    one.map_or(other, |one| one.min(other))
}
