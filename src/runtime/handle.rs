use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, AddressError, FenceToken, LockName, NameError, RedisAddress, RuntimeId,
    store::{ForceReleaseAnswer, Inspection, LeaseRecord},
};
use leasehold_reentrant_lock::{Engine, Footprint, Once, Owner, ReentrantLock, ShutdownReport};

use super::{
    builder::LockRuntimeBuilder,
    error::{ConnectError, InspectError},
};

/// The locks of this process: one per process is the rule, clones are the same.
///
/// Its background tasks end when the last clone, lock and guard are dropped.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use leasehold::LockRuntime;
///
/// // Or: LockRuntime::connect("redis://127.0.0.1:6379").await?
/// let locks = LockRuntime::embedded()?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// guard.release().await?;
///
/// let report = locks.drain(Duration::from_secs(5)).await; // before the process ends
/// assert!(report.unreleased.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LockRuntime {
    engine: Arc<Engine>,
}

/// What a force-release came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForceReleased {
    /// The lease that was found has ended.
    Ended {
        /// The lease that was found.
        lease: Box<LeaseRecord>,
        /// A token above that lease's: present it to a gate to shut the old holder out at once.
        /// `None` when the fence counter cannot count any further.
        fence: Option<FenceToken>,
    },
    /// Nobody held the lock, or the lease that was found ended by itself meanwhile.
    NotHeld,
}

impl LockRuntime {
    /// Connects to a Redis server with the default settings.
    ///
    /// # Errors
    ///
    /// As [`LockRuntimeBuilder::connect`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockRuntimeBuilder::connect`].
    pub async fn connect<A>(address: A) -> Result<Self, ConnectError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        Self::builder().connect(address).await
    }

    /// Makes a runtime with the default settings for a Redis server that may not be there yet, and
    /// sends nothing; the first acquire connects.
    ///
    /// # Errors
    ///
    /// As [`LockRuntimeBuilder::connect_lazy`].
    pub fn connect_lazy<A>(address: A) -> Result<Self, ConnectError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        Self::builder().connect_lazy(address)
    }

    /// Keeps the leases in the memory of this process, under the same rules.
    ///
    /// # Errors
    ///
    /// As [`LockRuntimeBuilder::embedded`].
    pub fn embedded() -> Result<Self, ConnectError> {
        Self::builder().embedded()
    }

    /// Settings other than the default ones.
    pub fn builder() -> LockRuntimeBuilder {
        LockRuntimeBuilder::new()
    }

    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }

    /// A lock by name.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the text cannot be the name of a lock.
    pub fn lock(&self, name: impl AsRef<str>) -> Result<ReentrantLock, NameError> {
        Ok(ReentrantLock::new(Arc::clone(&self.engine), LockName::new(name)?))
    }

    /// Something to be done once, such as the answer to one submission of a form: the first caller
    /// runs, others hear of it while it runs and for a window after it succeeded.
    ///
    /// It rests on the lock of the same name: a holder of that lock keeps the door closed, and a
    /// force-release opens it.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the text cannot be the name of a lock.
    pub fn once(&self, name: impl AsRef<str>) -> Result<Once, NameError> {
        Ok(Once::new(Arc::clone(&self.engine), LockName::new(name)?))
    }

    /// A new owner, who may re-enter the locks it holds.
    pub fn owner(&self) -> Owner {
        self.engine.owner()
    }

    /// Who this runtime is; the first part of the ids of its leases.
    pub fn id(&self) -> RuntimeId {
        self.engine.runtime_id()
    }

    /// Counts what the runtime keeps in memory.
    pub fn footprint(&self) -> Footprint {
        self.engine.footprint()
    }

    /// Tells who holds a lock, and who waits for it.
    ///
    /// # Errors
    ///
    /// - [`InspectError::Name`] when the text cannot be the name of a lock.
    /// - [`InspectError::Store`] when the store cannot tell.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; dropping the future only forgets the answer.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Inspection, InspectError> {
        Ok(self.engine.inspect(&LockName::new(name)?).await?)
    }

    /// Looks who holds a lock, and ends that lease.
    ///
    /// For operators: the holder's runtime is told at once, and learns of it at its next renewal
    /// if the message is lost. What it writes until then is refused only where the storage checks
    /// fences. The lock goes on to the next who waits.
    ///
    /// # Errors
    ///
    /// - [`InspectError::Name`] when the text cannot be the name of a lock.
    /// - [`InspectError::Store`] when the store could not be asked or told; of kind
    ///   `Indeterminate`, the lease may have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back.
    pub async fn force_release(
        &self,
        name: impl AsRef<str>,
    ) -> Result<ForceReleased, InspectError> {
        let name = LockName::new(name)?;
        match self.engine.inspect(&name).await? {
            Inspection::Held(lease) => self.end(&name, lease).await,
            Inspection::Free { .. } => Ok(ForceReleased::NotHeld),
        }
    }

    async fn end(
        &self,
        name: &LockName,
        lease: LeaseRecord,
    ) -> Result<ForceReleased, InspectError> {
        let (id, fence): (AcquisitionId, FenceToken) = (lease.id, lease.fence);
        Ok(match self.engine.force_release(name, id, fence).await? {
            ForceReleaseAnswer::Ended { fence } => {
                ForceReleased::Ended { lease: Box::new(lease), fence }
            }
            ForceReleaseAnswer::Changed => ForceReleased::NotHeld,
        })
    }

    /// Refuses further acquires, lets guards end for at most `time`, then shuts down.
    ///
    /// For a service that is asked to stop. From the first poll on, acquires fail with `ShutDown`, and
    /// so do those that wait. Leases that are held go on: they are renewed, and the same owner or
    /// guard can re-enter them. Once all guards have ended, or when `time` is over, what is still held
    /// is ended as by [`shutdown`](Self::shutdown), and the report counts it. Takes at most `time`,
    /// and one command timeout for what had to be ended then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the drain under way. Another call waits for the same drain, whose
    /// time stays that of the first call, and yields its report; a [`shutdown`](Self::shutdown) ends
    /// it early.
    pub async fn drain(&self, time: Duration) -> ShutdownReport {
        self.engine.drain(time).await
    }

    /// Refuses further acquires, ends every held lease, and waits for the server to confirm.
    ///
    /// Holders learn of it at once: their lease is `Lost(Shutdown)` before the server is told.
    /// Takes at most `time`, and reports what could not be released within it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the shutdown under way; call it again to wait for the rest.
    pub async fn shutdown(&self, time: Duration) -> ShutdownReport {
        self.engine.shutdown(time).await
    }
}
