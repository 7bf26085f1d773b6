use std::{future::Future, sync::Arc, time::Duration};

use leasehold_core::{
    Fence, LockName, NameError, NamePattern, RuntimeId, StoreError,
    store::{ForceReleaseAnswer, Inspection, LeaseRecord},
};
use leasehold_doctor::Diagnosis;
use leasehold_redis::{AddressError, RedisAddress};
use leasehold_reentrant_lock::{
    AllLocks, Engine, Footprint, Health, LockList, Once, Owner, ReentrantLock, RwLock,
    ShutdownReport, WaitGraph,
};

use super::{builder::LockRuntimeBuilder, connect_error::ConnectError, doctor::Doctor};

/// The locks of this process. Make one runtime for a process; clones share it.
///
/// Its background tasks end when the last clone, lock and guard are dropped. With a thread of its own
/// the last clone waits for releases that are on their way, for 50 ms at most. Before a process ends,
/// [`drain`](Self::drain) it: what is still held or not yet sent when `main` returns stays closed for
/// up to its ttl, and a warning in the log names it.
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
    pub(super) engine: Arc<Engine>,
    // Before the doctor, which keeps a thread of its own alive.
    pub(super) _farewell: Arc<Farewell>,
    pub(super) doctor: Doctor,
}

/// The last handle of a runtime says farewell.
#[derive(Debug)]
pub(super) struct Farewell(pub(super) Arc<Engine>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.farewell();
    }
}

/// The result of a force-release.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForceReleased {
    /// The lease that was found has ended.
    Ended {
        /// The lease that was found.
        lease: Box<LeaseRecord>,
        /// A token above that of the lease: pass it to a gate to shut the old holder out at once.
        /// `None` when the fence counter has reached its end.
        fence: Option<Fence>,
    },
    /// Nobody held the lock, or the lease that was found ended by itself meanwhile.
    NotHeld,
}

/// Why a lock could not be inspected or released by force.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The name is not the name of a lock.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store gave no usable answer.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// sends the server nothing; the first acquire connects.
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

    /// Returns a builder, for settings that differ from the defaults.
    pub fn builder() -> LockRuntimeBuilder {
        LockRuntimeBuilder::new()
    }

    /// Returns the lock of a name.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the text cannot be the name of a lock.
    pub fn lock(&self, name: impl AsRef<str>) -> Result<ReentrantLock, NameError> {
        Ok(ReentrantLock::new(Arc::clone(&self.engine), LockName::new(name)?))
    }

    /// Returns the lock of a name, which many may read at once, and one may write.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the text cannot be the name of a lock.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> Result<RwLock, NameError> {
        Ok(RwLock::new(Arc::clone(&self.engine), LockName::new(name)?))
    }

    /// Returns several locks to be taken at once: all of them, or none, within one wait.
    ///
    /// They are taken in the order of their names, whatever order they are given in, so callers of
    /// `all` never wait for each other in a circle. A name that is given twice counts once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use leasehold::LockRuntime;
    ///
    /// let locks = LockRuntime::embedded()?;
    /// let accounts = locks.all(["accounts/7", "accounts/3"])?;
    /// let both = accounts.acquire().wait(Duration::from_secs(5)).await?;
    /// let (from, to) = (both["accounts/7"].stamp(), both["accounts/3"].stamp());
    /// println!("write to 7 with {from}, to 3 with {to}"); // the storage compares the stamps
    /// both.release().await?; // or drop it: that ends all of them, too
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NameError`] when a text cannot be the name of a lock, or when there is none.
    pub fn all(
        &self,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<AllLocks, NameError> {
        let names: Result<Vec<_>, _> = names.into_iter().map(LockName::new).collect();
        AllLocks::new(&self.engine, names?)
    }

    /// Names work that is done once, such as for one submission of a form: the first caller runs.
    /// While it runs, and for a window after its success, other callers are told that they are
    /// duplicates.
    ///
    /// It uses the lock of the same name: while somebody holds that lock, all callers are
    /// duplicates, and a force-release lets the next caller run.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the text cannot be the name of a lock.
    pub fn once(&self, name: impl AsRef<str>) -> Result<Once, NameError> {
        Ok(Once::new(Arc::clone(&self.engine), LockName::new(name)?))
    }

    /// Makes a new owner, which may re-enter the locks that it holds.
    pub fn owner(&self) -> Owner {
        self.engine.owner()
    }

    /// Returns the id of this runtime: the first part of the ids of its leases.
    pub fn id(&self) -> RuntimeId {
        self.engine.runtime_id()
    }

    /// Counts the entries that the runtime keeps in memory.
    pub fn footprint(&self) -> Footprint {
        self.engine.footprint()
    }

    /// Returns how this runtime is: whether its server answers, how many leases are at risk, and whether
    /// it drains. For readiness probes, see the guide [health](crate::guide::health).
    ///
    /// It tells what the runtime knows: it sends nothing, and does not wait. From the first call on, the
    /// runtime sends the server one small command if nothing was heard of it for two seconds, so that an
    /// outage shows also when nobody uses a lock; a lazy runtime connects for it. An outage shows
    /// within a second while commands are sent, and otherwise within 5 s. A process that stands still, and so hears
    /// nothing for 5 s, is not ready until the next answer.
    ///
    /// A server that answers with errors, because it is full or loads its data, counts as one that
    /// answers; one that refuses the login, a right or the version does not.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use leasehold::LockRuntime;
    ///
    /// let locks = LockRuntime::embedded()?;
    /// assert!(locks.health().is_ready());
    /// let _ = locks.drain(Duration::ZERO).await;
    /// let health = locks.health();
    /// assert!(!health.is_ready(), "{health}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// Examines the servers for what endangers a promise: version, rights, scripts, eviction,
    /// persistence, replicas, Sentinels or slots, clock, latency.
    ///
    /// It never fails: a server that does not answer, and what the user may not read, are findings.
    /// It takes at most the connect timeout, two command timeouts and 5 s, and with Sentinels or on a
    /// Cluster up to two connect timeouts more. It uses connections of its own, so no lease waits
    /// for it. A runtime without a server answers with a diagnosis that says so.
    ///
    /// ```no_run
    /// # async fn example(locks: leasehold::LockRuntime) {
    /// println!("{}", locks.diagnose().await);
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind but, at worst, test keys that expire after a
    /// second.
    pub async fn diagnose(&self) -> Diagnosis {
        self.doctor.diagnose(self.engine.is_forked()).await
    }

    /// Returns the holder of a lock, and the processes that wait for it.
    ///
    /// # Errors
    ///
    /// - [`InspectError::Name`] when the text cannot be the name of a lock.
    /// - [`InspectError::Store`] when the store gives no usable answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; dropping the future only forgets the answer.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Inspection, InspectError> {
        Ok(self.engine.inspect(&LockName::new(name)?).await?)
    }

    /// Lists the locks of the namespace that somebody holds, or that are kept closed, with their
    /// holders and the processes that wait; `"*"` for all, see [`NamePattern`].
    ///
    /// The list is read in steps while it is polled, one command at a time. A server spends some
    /// tens of microseconds on a step, however many locks and other keys it has: a `SCAN` with
    /// `COUNT 250`, or a look at 16 locks (on a Cluster one). Each lock is seen at one moment, and
    /// another lock at another. A lock that is held from the first step to the last is in the list,
    /// unless it moves to another server meanwhile; one that is given back before it is looked at is
    /// left out. None of the first 100,000 names comes twice. The locks come in no order. On Redis
    /// the user needs the right to `SCAN`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use leasehold::LockRuntime;
    ///
    /// let locks = LockRuntime::embedded()?;
    /// let _guard = locks.lock("orders/42")?.acquire().await?;
    /// let mut held = locks.list("orders/*")?;
    /// while let Some(lock) = held.next().await {
    ///     let lock = lock?;
    ///     println!("{} since {:?}: {}", lock.name, lock.lease.held_for, lock.lease.label);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`NameError::Pattern`] when the text is not a pattern.
    pub fn list(&self, pattern: impl AsRef<str>) -> Result<LockList, NameError> {
        Ok(LockList::new(Arc::clone(&self.engine), NamePattern::new(pattern)?))
    }

    /// Finds out who holds which locks of the namespace, who waits for them, and where processes
    /// wait for each other in a circle.
    ///
    /// It [lists](Self::list) all locks. Its cycles are *certain*: they are those among the
    /// [owners](Owner) of this runtime; tasks that acquire without an owner are not seen. Cycles
    /// between processes are only *possible*, because Redis knows processes, and not their tasks: ask
    /// for them by [`WaitGraph::possible_cycles`]. It never fails: what could not be read is in the
    /// graph, which is then not complete. It needs memory for all locks that are held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use leasehold::LockRuntime;
    ///
    /// let locks = LockRuntime::embedded()?;
    /// let _guard = locks.lock("orders/42")?.acquire().await?;
    /// let graph = locks.wait_graph().await;
    /// assert_eq!(graph.processes[0].holds[0].lock.as_str(), "orders/42");
    /// for cycle in &graph.cycles {
    ///     println!("certain: {cycle}");
    /// }
    /// for cycle in graph.possible_cycles() {
    ///     println!("possible: {cycle}"); // look at it if something is stuck
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed; dropping the future only forgets what was read.
    pub async fn wait_graph(&self) -> WaitGraph {
        self.engine.wait_graph().await
    }

    /// Ends the lease of the holder of a lock.
    ///
    /// For operators. A message tells the holder's runtime at once; if the message is lost, the
    /// runtime learns of the loss at its next renewal. Until then, writes of the holder are
    /// refused only if the storage checks fences. The lock goes to the next waiter.
    ///
    /// # Errors
    ///
    /// - [`InspectError::Name`] when the text cannot be the name of a lock.
    /// - [`InspectError::Store`] when a command to the store failed; if its kind is
    ///   `Indeterminate`, the lease may have ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not withdraw the command.
    pub async fn force_release(
        &self,
        name: impl AsRef<str>,
    ) -> Result<ForceReleased, InspectError> {
        let name = name.as_ref();
        let Inspection::Held(lease) = self.inspect(name).await? else {
            return Ok(ForceReleased::NotHeld);
        };
        self.force_release_lease(name, lease).await
    }

    /// Ends one lease of a lock, which [`inspect`](Self::inspect) has shown, and no later one.
    ///
    /// As [`force_release`](Self::force_release), for operators who look, decide, and then act: if
    /// the lease has ended meanwhile, the answer is [`ForceReleased::NotHeld`], and a later holder
    /// keeps the lock.
    ///
    /// # Errors
    ///
    /// As [`force_release`](Self::force_release).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not withdraw the command.
    pub async fn force_release_lease(
        &self,
        name: impl AsRef<str>,
        lease: LeaseRecord,
    ) -> Result<ForceReleased, InspectError> {
        let name = LockName::new(name)?;
        Ok(match self.engine.force_release(&name, lease.id, lease.fence).await? {
            ForceReleaseAnswer::Ended { fence } => {
                ForceReleased::Ended { lease: Box::new(lease), fence }
            }
            ForceReleaseAnswer::Changed => ForceReleased::NotHeld,
        })
    }

    /// Refuses further acquires, lets guards end for at most `time`, then shuts down.
    ///
    /// For a service that has to stop. From the first poll on, new and waiting acquires fail with
    /// `ShutDown`. Held leases go on: they are renewed, and the same owner or guard can re-enter
    /// them. Holders that would go on for long watch [`draining`](Self::draining). When
    /// all guards have ended, or `time` is over, the remaining leases are ended as by
    /// [`shutdown`](Self::shutdown), and the report counts them. Takes at most `time`, plus one
    /// command timeout for the leases that had to be ended.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the drain goes on. Another call waits for the same drain, with
    /// the `time` of the first call, and returns its report; a [`shutdown`](Self::shutdown) ends
    /// it early.
    pub async fn drain(&self, time: Duration) -> ShutdownReport {
        self.engine.drain(time).await
    }

    /// Returns a future that borrows nothing, and resolves when a [drain](Self::drain) or a
    /// [shutdown](Self::shutdown) begins.
    ///
    /// For tasks that hold a lease for long: a leader, a worker in a loop, the body of a `with`. Such a task
    /// ends its work, and releases its lease, before the time of the drain is over. The future also
    /// resolves at once if the drain began before, or if the runtime and its locks and guards are gone, and
    /// so does one that is made in a fork of the process.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use leasehold::LockRuntime;
    ///
    /// let locks = LockRuntime::embedded()?;
    /// let (guard, mut draining) = (locks.lock("leader")?.acquire().await?, locks.draining());
    /// let leader = tokio::spawn(async move {
    ///     loop {
    ///         tokio::select! {
    ///             biased;
    ///             () = &mut draining => break,
    ///             () = tokio::time::sleep(Duration::from_millis(1)) => {} // one step of the work
    ///         }
    ///     }
    ///     guard.release().await
    /// });
    /// let report = locks.drain(Duration::from_secs(5)).await; // when the signal comes
    /// assert_eq!(report.held, 0); // the leader has released its lease itself
    /// leader.await??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub fn draining(&self) -> impl Future<Output = ()> + Send + Unpin + use<> {
        self.engine.draining()
    }

    /// Refuses further acquires, ends every held lease, and waits for the server to confirm.
    ///
    /// Holders are told at once: their lease is `Lost(Shutdown)` before a command is sent to the
    /// server. Takes at most `time`, and reports the leases whose release was not confirmed within
    /// it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the shutdown goes on; call it again to wait for the rest.
    pub async fn shutdown(&self, time: Duration) -> ShutdownReport {
        self.engine.shutdown(time).await
    }
}
