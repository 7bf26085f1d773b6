use std::{
    fmt,
    sync::{Arc, Mutex},
};

use leasehold_core::{
    AcquisitionId, Clock, Entropy, Instant, LockName, LockStore, RuntimeId, RuntimeLabel,
    StoreError,
    metric::Metrics,
    outage::{OutageWatch, WatchedStore},
    store::{ForceRelease, ForceReleaseAnswer, Inspection},
};
use leasehold_watchdog::{Common, TurnKeeper, Watchdog, Watches};
use tokio_util::sync::CancellationToken;

use crate::{
    cohort::Numbers,
    driver::{Cohorts, Heartbeats, HeartbeatsTask, Shared},
    owner::Owner,
    seam::Rules,
};

use super::{
    drain::Drain, executor::Executor, reaper::Reaper, timing::Timing, watermarks::Watermarks,
};

/// What an [`Engine`] is made of.
#[derive(Debug)]
pub struct EngineParts {
    /// Where leases are kept.
    pub store: Arc<dyn LockStore>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where jitter comes from.
    pub entropy: Arc<dyn Entropy>,
    /// Where background tasks run.
    pub executor: Executor,
    /// Who this runtime is; never used by another.
    pub runtime_id: RuntimeId,
    /// What operators see as the holder.
    pub label: RuntimeLabel,
    /// The times that hold for all locks.
    pub timing: Timing,
    /// The decisions of its rules; the real ones unless a test wants to see what else would come
    /// of it.
    #[doc(hidden)]
    pub rules: Rules,
}

/// What the locks of one runtime share; its tasks end when the last lock and guard are dropped.
pub struct Engine {
    pub(crate) store: Arc<dyn LockStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) cohorts: Arc<Cohorts>,
    pub(crate) reaper: Reaper,
    pub(crate) closed: CancellationToken,
    pub(super) drain: Drain,
    pub(crate) label: RuntimeLabel,
    pub(crate) timing: Timing,
    runtime_id: RuntimeId,
    // Each ends its task.
    _watchdog: Watchdog,
    _heartbeats: HeartbeatsTask,
    _executor: Executor,
}

impl Engine {
    /// Starts the background tasks.
    pub fn start(parts: EngineParts) -> Arc<Self> {
        let EngineParts { store, clock, entropy, executor, runtime_id, label, timing, rules } =
            parts;
        let metrics = Arc::new(Metrics::default());
        let common = Common::new(Arc::clone(&clock), rules.watchdog);
        let outages = Arc::clone(common.outages());
        // Whatever this runtime sends passes here.
        let store: Arc<dyn LockStore> = Arc::new(WatchedStore::new(store, outages));
        let reaper = Reaper::start(
            &executor,
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&entropy),
            Arc::clone(&metrics),
        );
        let cohorts = Cohorts::new(Shared {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            entropy: Arc::clone(&entropy),
            metrics: Arc::clone(&metrics),
            watches: Watches::new(common, Arc::clone(&entropy)),
            reaper: reaper.clone(),
            watermarks: Watermarks::default(),
            label: label.clone(),
            timing,
            numbers: Numbers::new(runtime_id),
            rules,
            runtime: executor.handle().clone(),
            reports: Mutex::default(),
            suspects: Mutex::default(),
            unconfirmed: Mutex::default(),
        });
        let watchdog = Watchdog::start(
            executor.handle(),
            cohorts.shared.watches.clone(),
            Arc::clone(&store),
            Arc::clone(&cohorts) as Arc<dyn TurnKeeper>,
            Arc::clone(&metrics),
        );
        Arc::new(Self {
            store,
            clock,
            entropy,
            metrics,
            reaper,
            closed: CancellationToken::new(),
            drain: Drain::default(),
            label,
            timing,
            runtime_id,
            _watchdog: watchdog,
            _heartbeats: Heartbeats::start(&cohorts),
            _executor: executor,
            cohorts,
        })
    }

    /// A new owner, who may re-enter what it holds.
    pub fn owner(&self) -> Owner {
        Owner::new(self.runtime_id)
    }

    /// Who this runtime is.
    pub fn runtime_id(&self) -> RuntimeId {
        self.runtime_id
    }

    /// Tells who holds a lock, and who waits for it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store cannot tell.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; dropping the future only forgets the answer.
    pub async fn inspect(&self, name: &LockName) -> Result<Inspection, StoreError> {
        self.inspect_until(name, self.command_deadline()).await
    }

    /// The same, with an answer at `deadline` at the latest.
    pub(crate) async fn inspect_until(
        &self,
        name: &LockName,
        deadline: Instant,
    ) -> Result<Inspection, StoreError> {
        self.cohorts.shared.inspect(name, deadline).await
    }

    /// Ends the lease that an inspection showed, and no other.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store cannot be told; `Indeterminate` means that the lease may
    /// have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn force_release(
        &self,
        name: &LockName,
        id: AcquisitionId,
        fence: leasehold_core::FenceToken,
    ) -> Result<ForceReleaseAnswer, StoreError> {
        let deadline = self.command_deadline();
        let command = ForceRelease { name, id, fence, deadline };
        tracing::warn!(lock = %name, lease = %id, %fence, "force-releasing a lease");
        let answer = self.counted(self.store.force_release(command).await)?;
        if matches!(answer, ForceReleaseAnswer::Ended { .. }) && id.runtime() == self.runtime_id {
            self.cohorts.force_released(name, id, fence);
        }
        Ok(answer)
    }

    /// Whether the tasks of this runtime have ended: nothing is renewed, and nobody is asked for.
    pub(crate) fn has_stopped(&self) -> bool {
        self.cohorts.shared.watches.have_stopped() || self.cohorts.is_closed()
    }

    /// What is known of the server's outages.
    pub(crate) fn outages(&self) -> &OutageWatch {
        self.cohorts.shared.watches.common().outages()
    }

    /// A number for a change of holds, above those before.
    pub(crate) fn change_number(&self) -> u64 {
        self.cohorts.shared.numbers.change()
    }

    /// Passes an answer on, and counts it if it is an error.
    pub(crate) fn counted<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        answer.inspect_err(|error| self.metrics.store().error(error.kind()))
    }

    fn command_deadline(&self) -> Instant {
        self.clock.now() + self.timing.command_timeout
    }
}

/// Short on purpose: it is part of every lock's.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("runtime_id", &self.runtime_id)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}
