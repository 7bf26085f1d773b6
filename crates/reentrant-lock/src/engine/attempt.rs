use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Instant, LockName, StoreError, StoreErrorKind, Ttl,
    lease::Grant,
    metric::ClassMetrics,
    store::{Acquire, AcquireAnswer, Granted},
};
use leasehold_watchdog::{Claim, HeldLease, Watch};

use super::{
    backoff::Backoff,
    core::Engine,
    job::{Job, Task},
};

/// One acquisition on its way, under one id however often it is tried.
///
/// It exists before the first await. Dropped before a grant was taken, it withdraws whatever may
/// have come of it; left unpolled for the claim window, the watchdog withdraws it.
#[derive(Debug)]
pub(crate) struct Attempt {
    pending: Arc<Pending>,
    /// Watched while an answer is awaited, and from then on if one never came.
    claim: Option<ClaimWatch>,
    /// An earlier copy of the command was not answered and may still be executed.
    uncertain: bool,
}

/// What came of a try.
#[derive(Debug)]
pub(crate) enum Tried {
    /// The lock is ours; the claim's watch is to be replaced by the lease's.
    Granted { grant: Grant, at: Instant, claim: ClaimWatch, uncertain: bool },
    /// Somebody else holds it.
    Busy { remaining: Duration },
    /// The acquisition was withdrawn meanwhile; a fresh one may be tried at once.
    Void,
    /// The store failed.
    Failed(StoreError),
}

impl Attempt {
    pub(crate) fn new(
        engine: &Arc<Engine>,
        name: &LockName,
        ttl: Ttl,
        metrics: &Arc<ClassMetrics>,
    ) -> Self {
        let pending = Arc::new(Pending {
            engine: Arc::clone(engine),
            name: name.clone(),
            id: engine.next_acquisition(),
            ttl,
            metrics: Arc::clone(metrics),
            state: AtomicU8::new(IDLE),
        });
        Self { pending, claim: None, uncertain: false }
    }

    /// Asks once, and takes the answer if it came in time.
    pub(crate) async fn try_once(&mut self, deadline: Instant) -> Tried {
        let Self { pending, claim, uncertain } = self;
        let Pending { engine, name, id, ttl, .. } = &**pending;
        let sent_at = engine.clock.now();
        let watermark = engine.watermarks.of(sent_at, name);
        let label = &engine.label;
        let command = Acquire { name, id: *id, ttl: *ttl, watermark, label, deadline };
        *claim = pending.sent(sent_at);
        if claim.is_none() {
            return Tried::Void;
        }
        let answer = engine.counted(engine.store.acquire(command).await);
        let now = engine.clock.now();
        if let Ok(AcquireAnswer::Granted(granted)) = &answer {
            pending.saw(now, granted);
        }
        // A grant that came too late to be believed is no better than an answer that did not come.
        let grant = believable(&command, sent_at, now, &answer);
        let doubtful = match &answer {
            Ok(AcquireAnswer::Granted(_)) => grant.is_none(),
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) => *uncertain,
            Err(error) => *uncertain || error.kind() == StoreErrorKind::Indeterminate,
        };
        if !pending.answered(doubtful) {
            return Tried::Void;
        }
        let was_uncertain = std::mem::replace(uncertain, doubtful);
        let watch = claim.take();
        if doubtful {
            // Whoever waits looks again within a pause; a future that nobody polls does not.
            *claim = pending.watch(now + Backoff::LONGEST);
        }
        match (answer, grant, watch) {
            (_, Some(grant), Some(claim)) => {
                Tried::Granted { grant, at: now, claim, uncertain: was_uncertain }
            }
            (Ok(AcquireAnswer::Busy { remaining }), ..) => Tried::Busy { remaining },
            (Err(error), ..) => Tried::Failed(error),
            (Ok(AcquireAnswer::Granted(_) | AcquireAnswer::Withdrawn), ..) => Tried::Void,
        }
    }
}

/// The grant of an answer, if there is one and time is left to believe in it.
fn believable(
    command: &Acquire<'_>,
    sent_at: Instant,
    now: Instant,
    answer: &Result<AcquireAnswer, StoreError>,
) -> Option<Grant> {
    let Ok(AcquireAnswer::Granted(granted)) = answer else { return None };
    let grant = Grant::from_answer(command, sent_at, granted);
    (!grant.remaining(now).is_zero()).then_some(grant)
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.pending.take_back() {
            self.pending.withdraw();
        }
    }
}

/// The watch over a command on its way; it ends with the wait for the answer.
#[derive(Debug)]
pub(crate) struct ClaimWatch {
    engine: Arc<Engine>,
    watch: Option<Watch>,
}

impl ClaimWatch {
    /// Replaces the claim by the lease that came of it.
    pub(crate) fn become_lease(mut self, lease: &Arc<HeldLease>, renews: bool) -> Watch {
        let claim = self.watch.take();
        self.engine.watchdog.watch_lease(claim, lease, renews)
    }
}

impl Drop for ClaimWatch {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            self.engine.watchdog.forget(watch);
        }
    }
}

/// The part of an attempt that the watchdog sees.
#[derive(Debug)]
struct Pending {
    engine: Arc<Engine>,
    name: LockName,
    id: AcquisitionId,
    ttl: Ttl,
    metrics: Arc<ClassMetrics>,
    state: AtomicU8,
}

/// Nothing is on its way.
const IDLE: u8 = 0;
/// A command is on its way, and its answer is awaited.
const AWAITED: u8 = 1;
/// A command may have been executed, or still be, and its answer never came.
const DOUBTFUL: u8 = 2;
/// The acquisition was withdrawn; its answer counts for nothing.
const WITHDRAWN: u8 = 3;

impl Pending {
    /// A command goes out; `None` if the acquisition is withdrawn already.
    fn sent(self: &Arc<Self>, now: Instant) -> Option<ClaimWatch> {
        if !self.change(IDLE, AWAITED) && !self.change(DOUBTFUL, AWAITED) {
            return None;
        }
        self.watch(now)
    }

    /// Watches for the claim window from `from` on; `None` if there is nothing to watch any more.
    fn watch(self: &Arc<Self>, from: Instant) -> Option<ClaimWatch> {
        let window = self.engine.timing.claim_window(self.ttl);
        let claim: Arc<dyn Claim> = Arc::clone(self) as _;
        let watch = self.engine.watchdog.watch_claim(from + window, claim);
        let claim = ClaimWatch { engine: Arc::clone(&self.engine), watch: Some(watch) };
        (self.state.load(Ordering::Acquire) != WITHDRAWN).then_some(claim)
    }

    /// Whether the answer still counts.
    fn answered(&self, doubtful: bool) -> bool {
        self.change(AWAITED, if doubtful { DOUBTFUL } else { IDLE })
    }

    /// Whether something may come of a command, that now counts for nothing.
    fn take_back(&self) -> bool {
        self.change(AWAITED, WITHDRAWN) || self.change(DOUBTFUL, WITHDRAWN)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(from, to, success, failure).is_ok()
    }

    /// A token was granted, whether the grant counts or not.
    fn saw(&self, now: Instant, granted: &Granted) {
        self.engine.watermarks.saw(now, &self.name, granted.last);
        if granted.regressed {
            self.engine.metrics.store().regression();
            tracing::error!(
                lock = %self.name, fence = %granted.first,
                "the server's fence counter was behind what this process had seen: it lost data; the new token is above both"
            );
        }
    }

    fn withdraw(&self) {
        self.engine.reaper.take(Job {
            name: self.name.clone(),
            id: self.id,
            task: Task::Withdraw,
            expires: self.engine.clock.now() + self.ttl.get(),
            timeout: self.engine.timing.command_deadline(self.ttl),
            metrics: Arc::clone(&self.metrics),
        });
    }
}

impl Claim for Pending {
    fn expire(&self) -> bool {
        let taken_back = self.take_back();
        if taken_back {
            self.withdraw();
        }
        taken_back
    }
}
