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
    store::{Acquire, AcquireAnswer},
};
use leasehold_watchdog::{Claim, HeldLease, Watch};

use super::{
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
        Self { pending, uncertain: false }
    }

    /// Asks once, and takes the answer if it came in time.
    pub(crate) async fn try_once(&mut self, deadline: Instant) -> Tried {
        let Pending { engine, name, id, ttl, .. } = &*self.pending;
        let sent_at = engine.clock.now();
        let watermark = engine.watermarks.of(sent_at, name);
        let label = &engine.label;
        let command = Acquire { name, id: *id, ttl: *ttl, watermark, label, deadline };
        let claim = self.pending.sent(sent_at);
        let answer = engine.counted(engine.store.acquire(command).await);
        if !self.pending.answered() {
            return Tried::Void;
        }
        match answer {
            Ok(AcquireAnswer::Granted(granted)) => {
                let now = engine.clock.now();
                engine.watermarks.saw(now, name, granted.last);
                if granted.regressed {
                    engine.metrics.store().regression();
                    tracing::error!(
                        lock = %name, fence = %granted.first,
                        "the server's fence counter was behind what this process had seen: it lost data; the new token is above both"
                    );
                }
                let grant = Grant::from_answer(&command, sent_at, &granted);
                if grant.remaining(now).is_zero() {
                    // Too late to believe in: taken back, as if the answer had not come.
                    self.uncertain = true;
                    return Tried::Void;
                }
                let uncertain = std::mem::take(&mut self.uncertain);
                Tried::Granted { grant, at: now, claim, uncertain }
            }
            Ok(AcquireAnswer::Busy { remaining }) => Tried::Busy { remaining },
            Ok(AcquireAnswer::Withdrawn) => Tried::Void,
            Err(error) => {
                self.uncertain |= error.kind() == StoreErrorKind::Indeterminate;
                Tried::Failed(error)
            }
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.pending.take_back() || self.uncertain {
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
/// The acquisition was withdrawn; its answer counts for nothing.
const WITHDRAWN: u8 = 2;

impl Pending {
    /// A command goes out; the claim window counts from here.
    fn sent(self: &Arc<Self>, now: Instant) -> ClaimWatch {
        self.state.store(AWAITED, Ordering::Release);
        let window = self.engine.timing.claim_window(self.ttl);
        let claim: Arc<dyn Claim> = Arc::clone(self) as _;
        let watch = self.engine.watchdog.watch_claim(now + window, claim);
        ClaimWatch { engine: Arc::clone(&self.engine), watch: Some(watch) }
    }

    /// Whether the answer still counts.
    fn answered(&self) -> bool {
        self.leave_awaited_for(IDLE)
    }

    /// Whether an answer was awaited, and now counts for nothing.
    fn take_back(&self) -> bool {
        self.leave_awaited_for(WITHDRAWN)
    }

    fn leave_awaited_for(&self, state: u8) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(AWAITED, state, success, failure).is_ok()
    }

    fn withdraw(&self) {
        self.engine.reaper.take(Job {
            name: self.name.clone(),
            id: self.id,
            task: Task::Withdraw,
            expires: self.engine.clock.now() + self.ttl.get(),
            metrics: Arc::clone(&self.metrics),
        });
    }
}

impl Claim for Pending {
    fn expire(&self) {
        if self.take_back() {
            self.withdraw();
        }
    }
}
