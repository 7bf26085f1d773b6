use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use leasehold_core::{
    AcquisitionId, Clock, Entropy, Instant, LockName, LockStore, RuntimeId, RuntimeLabel,
    StoreError,
    lease::LossReason,
    metric::Metrics,
    store::{ForceRelease, ForceReleaseAnswer, Inspection},
};
use leasehold_watchdog::Watchdog;
use tokio_util::sync::CancellationToken;

use crate::owner::Owner;

use super::{executor::Executor, reaper::Reaper, timing::Timing, watermarks::Watermarks};

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
}

/// What the locks of one runtime share; its tasks end when the last lock and guard are dropped.
pub struct Engine {
    pub(crate) store: Arc<dyn LockStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watchdog: Watchdog,
    pub(crate) reaper: Reaper,
    pub(crate) watermarks: Watermarks,
    pub(crate) closed: CancellationToken,
    pub(crate) label: RuntimeLabel,
    pub(crate) timing: Timing,
    runtime_id: RuntimeId,
    acquisitions: AtomicU64,
    _executor: Executor,
}

impl Engine {
    /// Starts the background tasks.
    pub fn start(parts: EngineParts) -> Arc<Self> {
        let EngineParts { store, clock, entropy, executor, runtime_id, label, timing } = parts;
        let metrics = Arc::new(Metrics::default());
        let watchdog = Watchdog::start(
            executor.handle(),
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&entropy),
            Arc::clone(&metrics),
        );
        let reaper = Reaper::start(
            &executor,
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&entropy),
            Arc::clone(&metrics),
        );
        Arc::new(Self {
            store,
            clock,
            entropy,
            metrics,
            watchdog,
            reaper,
            watermarks: Watermarks::default(),
            closed: CancellationToken::new(),
            label,
            timing,
            runtime_id,
            acquisitions: AtomicU64::new(0),
            _executor: executor,
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

    /// Tells who holds a lock.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store cannot tell.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; dropping the future only forgets the answer.
    pub async fn inspect(&self, name: &LockName) -> Result<Inspection, StoreError> {
        let deadline = self.command_deadline();
        self.counted(self.store.inspect(name, deadline).await)
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
            self.lose(id);
        }
        Ok(answer)
    }

    /// A lease of this very runtime was ended: its holder need not wait for a renewal to learn it.
    fn lose(&self, id: AcquisitionId) {
        for lease in self.watchdog.leases().iter().filter(|lease| lease.id() == id) {
            let _ = lease.lose(LossReason::Gone);
        }
    }

    /// An id that was never used.
    pub(crate) fn next_acquisition(&self) -> AcquisitionId {
        let number = self.acquisitions.fetch_add(1, Ordering::Relaxed) + 1;
        AcquisitionId::new(self.runtime_id, number)
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
