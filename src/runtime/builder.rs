use std::{fmt, sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, FenceSettings, LockStore, MemoryStore, Namespace, QuorumSettings, Replication,
    RuntimeId, RuntimeLabel, SystemClock, SystemEntropy, Ttl, store::BoundedStore,
};
use leasehold_doctor::{Examiner, Expected};
use leasehold_quorum::init_quorum;
#[cfg(feature = "tls")]
use leasehold_redis::Pem;
use leasehold_redis::{AddressError, CredentialsProvider, RedisAddress, RedisConfig};
use leasehold_reentrant_lock::{Engine, EngineParts, Executor, OptionsError, Timing, seam::Rules};

use super::{
    connect::{connect_store, connect_store_lazy},
    connect_error::ConnectError,
    doctor::Doctor,
    handle::{Farewell, LockRuntime},
    strictness::Strictness,
};

/// Settings of a [`LockRuntime`], checked when it is made.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing itself, connect it or make it embedded"]
pub struct LockRuntimeBuilder {
    namespace: String,
    service: String,
    fencing: FenceSettings,
    ttl: Duration,
    timing: Timing,
    own_thread: bool,
    strictness: Strictness,
    redis: Vec<RedisSetting>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    rules: Rules,
}

/// A setting for Redis only, by its name, applied once the address is known.
#[derive(Clone)]
struct RedisSetting(&'static str, Arc<dyn Fn(RedisConfig) -> RedisConfig + Send + Sync>);

/// Shows the name alone: the value may be a key or a password.
impl fmt::Debug for RedisSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl LockRuntimeBuilder {
    pub(super) fn new() -> Self {
        Self {
            namespace: Namespace::default().to_string(),
            service: service_of_program(),
            fencing: FenceSettings::default(),
            ttl: Ttl::default().get(),
            timing: Timing::default(),
            own_thread: false,
            strictness: Strictness::default(),
            redis: Vec::new(),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            rules: Rules::default(),
        }
    }

    /// Sets the prefix of all keys and channels; processes that share locks need the same. Default:
    /// `leasehold`.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// Names the service in the label of its leases, after host and process. Default: the
    /// program's name.
    pub fn service(self, service: impl Into<String>) -> Self {
        Self { service: service.into(), ..self }
    }

    /// Sets how fence tokens are made, and for how long counters are kept; processes that share
    /// locks need the same. Default: [`FenceSettings::default`].
    pub fn fencing(self, fencing: FenceSettings) -> Self {
        Self { fencing, ..self }
    }

    /// Sets how long a lease lives without renewal, 100 ms to 24 h, on a quorum up to its longest ttl.
    /// Default: 30 s.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, ..self }
    }

    /// Sets which acknowledgements grants and renewals need, so that a lease survives a failover.
    /// Default: none.
    ///
    /// [`Acquire::replication`](crate::Acquire::replication) sets it for one call, and says what
    /// happens when fewer acknowledge. The guide [topologies](crate::guide::topologies) says what to
    /// choose, and what it costs.
    ///
    /// ```
    /// # use {leasehold::{LockRuntime, redis::Replication}, std::time::Duration};
    /// let replication = Replication::wait(1, Duration::from_millis(500))?;
    /// let builder = LockRuntime::builder().replication(replication);
    /// # Ok::<(), leasehold::error::SettingError>(())
    /// ```
    pub fn replication(mut self, replication: Replication) -> Self {
        self.timing.acks = replication;
        self
    }

    /// Sets how long an acquire waits for a lock if it sets no other time. Default: 30 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.timing.wait = wait;
        self
    }

    /// Sets how long a grant waits until the future of an acquire takes it, and how long other
    /// processes wait for this runtime when they do not hear from it. At least 50 ms; if it is
    /// longer than the lock's ttl, the ttl counts. Default: 3 s.
    pub fn claim_window(mut self, window: Duration) -> Self {
        self.timing.claim_window = window;
        self
    }

    /// Sets how long one command may take, at least 10 ms, at most half the ttl. Default: 2 s.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.timing.command_timeout = timeout;
        self
    }

    /// Sets after what time a call that still waits for a lock is reported, at least 100 ms;
    /// `Duration::MAX` means never. An event of level `WARN` and target `leasehold::blocked` names
    /// the lock, how long the call has waited, its position, the holder, and how long it has held
    /// the lock.
    ///
    /// A call is reported again whenever its wait has doubled. Within this time each lock is
    /// reported once, however many calls wait for it, and at most eight locks are reported.
    /// [`Acquire::blocked_after`](crate::Acquire::blocked_after) sets the time for one call. Default: 10 s.
    pub fn blocked_after(mut self, time: Duration) -> Self {
        self.timing.blocked_after = time;
        self
    }

    /// Sets for how long an acquire waits without any answer from the server before it fails as
    /// [`AcquireError::Unavailable`](crate::error::AcquireError::Unavailable), at least 10 ms, and
    /// never longer than its wait. Default: 5 s.
    ///
    /// In an outage it counts from the beginning, also for acquires that come later: once it is over, each of
    /// them fails within 100 ms, or within four usual round trips if that is longer. It does not limit the
    /// wait for a taken lock: while the server answers, waits go on.
    pub fn outage_patience(mut self, patience: Duration) -> Self {
        self.timing.outage_patience = patience;
        self
    }

    /// Sets for how long a lock stays with this process when it is idle: after its last lease,
    /// while nobody else wants it. At most the ttl less half a second, or less a quarter of the claim
    /// window if that is shorter. Default: zero, not at all.
    ///
    /// [`ReentrantLock::keep_idle`](crate::ReentrantLock::keep_idle) sets it for one lock, and says
    /// how an idle lock is taken again or passed on; a `once` is never kept. If the process dies,
    /// its idle locks stay taken for up to one ttl. The guide [kept
    /// turns](crate::guide::kept_turns) says when it helps, and when it harms.
    pub fn keep_idle(mut self, time: Duration) -> Self {
        self.timing.keep_idle = time;
        self
    }

    /// Renews and cleans up on a thread of its own, which blocking code elsewhere cannot starve.
    /// Default: on the tokio runtime in which the lock runtime is made.
    ///
    /// Connections and timers run on that thread, too. So you may poll every future of the lock
    /// runtime, its locks and its guards anywhere: outside of tokio, or in different tokio
    /// runtimes. The thread ends when the last of them is dropped, and the pending releases are
    /// done.
    pub fn own_thread(self) -> Self {
        self.with_own_thread(true)
    }

    pub(super) fn with_own_thread(self, own_thread: bool) -> Self {
        Self { own_thread, ..self }
    }

    /// Sets what [`connect`](Self::connect) does about settings, rights and clocks of the servers
    /// that endanger a promise. Default: [`Strictness::Warn`].
    ///
    /// Unless it is [`Strictness::Ignore`], each server gets some 25 commands more, on a connection of
    /// their own. A server that does not answer them delays connecting by the connect
    /// timeout, two command timeouts and 5 s at most; a group or Cluster by two connect timeouts more.
    /// The settings that cannot be read on a server are findings, too.
    ///
    /// [`connect_lazy`](Self::connect_lazy) sends the servers nothing. It examines none, and fails
    /// with [`Strictness::Refuse`]. Locks in memory, and in a store of your own, have no server that
    /// is examined. [`LockRuntime::diagnose`] examines the servers at any time.
    pub fn strictness(self, strictness: Strictness) -> Self {
        Self { strictness, ..self }
    }

    /// Sets how many connections carry acquires and releases, 1 to 16. Default: 1.
    pub fn connections(self, connections: usize) -> Self {
        self.with("connections", move |config| config.connections(connections))
    }

    /// Sets how long making a connection may take, at least 10 ms. Default: 2 s.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.with("connect_timeout", move |config| config.connect_timeout(timeout))
    }

    /// Sets how the nodes of a quorum are used, for an address `redis+quorum://…`. Default:
    /// [`QuorumSettings::default`].
    ///
    /// ```
    /// # use {leasehold::{LockRuntime, redis::QuorumSettings}, std::time::Duration};
    /// # fn settings() -> Result<(), Box<dyn std::error::Error>> {
    /// let quorum = QuorumSettings::default().longest_ttl(Duration::from_secs(120))?;
    /// let builder = LockRuntime::builder().quorum(quorum);
    /// # Ok(())
    /// # }
    /// ```
    pub fn quorum(self, quorum: QuorumSettings) -> Self {
        self.with("quorum", move |config| config.quorum(quorum))
    }

    /// Sets the provider of user and password, which is asked for each new connection: for passwords
    /// and tokens that change. It replaces the user and password of the address. Default: those of
    /// the address.
    ///
    /// A provider that blocks its thread also blocks all else that runs there; with
    /// [`own_thread`](Self::own_thread) these are all timers of the lock runtime. A small local
    /// file is quick enough, a network is not.
    ///
    /// ```
    /// # use leasehold::{LockRuntime, redis::Credentials};
    /// let builder = LockRuntime::builder().credentials(|| async {
    ///     let password = std::fs::read_to_string("/run/secrets/redis")?;
    ///     Ok(Credentials::new("app", password.trim_end()))
    /// });
    /// ```
    pub fn credentials(self, provider: impl CredentialsProvider) -> Self {
        let provider: Arc<dyn CredentialsProvider> = Arc::new(provider);
        self.with("credentials", move |config| config.shared_credentials(Arc::clone(&provider)))
    }

    /// Sets the certificate authority to trust for `rediss://`, in PEM. Default: the system's.
    ///
    /// A text stays as it is. A [file](Pem::file) is read again for each new connection.
    ///
    /// ```
    /// # use leasehold::{LockRuntime, redis::Pem};
    /// let builder = LockRuntime::builder()
    ///     .tls_root_ca(Pem::file("/run/secrets/redis/ca.pem"))
    ///     .tls_client_certificate(
    ///         Pem::file("/run/secrets/redis/tls.crt"),
    ///         Pem::file("/run/secrets/redis/tls.key"),
    ///     );
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls_root_ca(self, pem: impl Into<Pem>) -> Self {
        let pem = pem.into();
        self.with("tls_root_ca", move |config| config.tls_root_ca(pem.clone()))
    }

    /// Sets the certificate and key to show to the server, in PEM. Default: none.
    ///
    /// Texts stay as they are. [Files](Pem::file) are read again for each new connection, so that renewed ones
    /// are used.
    #[cfg(feature = "tls")]
    pub fn tls_client_certificate(self, certificate: impl Into<Pem>, key: impl Into<Pem>) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        self.with("tls_client_certificate", move |config| {
            config.tls_client_certificate(certificate.clone(), key.clone())
        })
    }

    /// Sets what errors call the settings of TLS: the options of a program. Default: these functions.
    #[cfg(feature = "tls")]
    #[doc(hidden)]
    pub fn tls_names(self, ca: &'static str, certificate: &'static str, key: &'static str) -> Self {
        self.with("tls_names", move |config| config.tls_names(ca, certificate, key))
    }

    /// Replaces the clock, for tests in virtual time. Default: the machine's.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Replaces the source of ids and jitter, for tests that replay a run. Default: the system's.
    #[doc(hidden)]
    pub fn entropy(self, entropy: Arc<dyn Entropy>) -> Self {
        Self { entropy, ..self }
    }

    /// Replaces decisions by wrong ones, for tests that show the damage.
    #[doc(hidden)]
    pub fn seam(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// Connects to a Redis server, version 6.2 or newer.
    ///
    /// It runs every kind of command once, so a missing right shows here. Then it examines the server
    /// as [`strictness`](Self::strictness) says, and logs what it finds. The address is a text:
    /// `redis://[user:password@]host[:port][/database]`, `redis+unix:///path`, `rediss://…` with the
    /// feature `tls`, or `redis+sentinel://…`, `redis+cluster://…` and `redis+quorum://…` for several
    /// servers. Or it is a `Client` or `ConnectionInfo` of [`redis::client`](crate::redis::client).
    /// From a client Leasehold takes the address, login, database and TLS certificates, and makes its
    /// own connections.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # use leasehold::LockRuntime;
    /// let locks = LockRuntime::builder().connect(std::env::var("REDIS_URL")?).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`ConnectError::Address`], [`ConnectError::Namespace`], [`ConnectError::Setting`] and
    ///   [`ConnectError::Options`] for bad settings.
    /// - [`ConnectError::Store`] when the server is out of reach, refuses the login, denies a
    ///   command, is too old, or is a node of a Cluster at a plain address; of a quorum, when too few
    ///   nodes are left without those, or when two addresses lead to one server.
    /// - [`ConnectError::Refused`] for a server that endangers a promise, with
    ///   [`Strictness::Refuse`].
    /// - [`ConnectError::NoTokio`], [`ConnectError::NoTimers`], [`ConnectError::TokioEnded`] and
    ///   [`ConnectError::Thread`] when there is no tokio runtime with timers, or no thread, for
    ///   the background tasks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves at worst a test key behind, which expires after a second.
    pub async fn connect<A>(self, address: A) -> Result<LockRuntime, ConnectError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        let (config, timing, id, doctor) = self.prepared(address)?;
        let executor = &doctor.executor;
        let (clock, handle) = (executor.clock(Arc::clone(&self.clock)), executor.handle().clone());
        // On the executor, because the caller may poll this future outside of a tokio runtime.
        let connecting = async move { connect_store(&config, clock, handle, id).await };
        let store = executor.run(connecting).await.map_err(|_| ConnectError::TokioEnded)??;
        if self.strictness != Strictness::Ignore {
            let diagnosis = doctor.diagnose(false).await;
            diagnosis.log();
            if self.strictness == Strictness::Refuse && diagnosis.warnings().next().is_some() {
                return Err(ConnectError::Refused(Box::new(diagnosis)));
            }
        }
        let runtime = self.start(store, doctor, timing, id);
        runtime.engine.connected();
        Ok(runtime)
    }

    /// Lets the nodes of a new quorum count at once: otherwise its first grant comes after the longest ttl
    /// and twice the tolerance, 70 s by default, because nothing tells a new quorum from one that has
    /// lost everything.
    ///
    /// **By calling this you state** that no client has used these servers for the longest ttl of any client
    /// and twice the tolerance. If one has, and the servers have lost its leases, there can be two
    /// holders. All nodes have to answer, and none may have a boot mark or a key of the namespace, so a
    /// second call is refused. Call it once, when the servers are set up, and before any client
    /// connects; `leasehold quorum init` does so, too.
    ///
    /// # Errors
    ///
    /// - [`ConnectError::Store`], which names the first node that stands in the way: of kind `Config` if it
    ///   has a boot mark or a key, or is another node under a second name, else if it cannot be reached. Nothing was changed if the text says so. A node
    ///   that fails after all were looked at, or that somebody else has marked meanwhile, leaves the others
    ///   counting; then connect the clients: each node counts as its mark says.
    /// - For bad settings and without a tokio runtime, as [`connect`](Self::connect).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves some of the nodes as they were, and lets the others count.
    pub async fn init_quorum<A>(self, address: A) -> Result<(), ConnectError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        let (config, _, _, Doctor { executor, .. }) = self.prepared(address)?;
        let clock = executor.clock(Arc::clone(&self.clock));
        let beginning = async move { init_quorum(&config, clock).await };
        Ok(executor.run(beginning).await.map_err(|_| ConnectError::TokioEnded)??)
    }

    /// Makes a runtime for a Redis server that may not be there yet, and sends it nothing.
    ///
    /// The first acquire connects. Until the server has passed the same check as in
    /// [`connect`](Self::connect), it counts as a server in an outage: acquires go on waiting, and
    /// a try fails with the error of the last attempt. If only an operator can correct the error,
    /// such as a wrong password or a missing right, every acquire fails at once with a
    /// [`StoreError`](crate::error::StoreError) of kind `Config`. While acquires come, the check
    /// is repeated every second. After the correction the same runtime works.
    ///
    /// Its background tasks run on the tokio runtime in which you call this, unless
    /// [`own_thread`](Self::own_thread) is set.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), without [`ConnectError::TokioEnded`]. It fails as
    /// [`ConnectError::NotExamined`] with [`Strictness::Refuse`], and as [`ConnectError::Store`] only
    /// for settings that cannot work with any server, such as a certificate that is not readable.
    pub fn connect_lazy<A>(self, address: A) -> Result<LockRuntime, ConnectError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        if self.strictness == Strictness::Refuse {
            return Err(ConnectError::NotExamined);
        }
        let (config, timing, id, doctor) = self.prepared(address)?;
        let executor = &doctor.executor;
        let (clock, handle) = (executor.clock(Arc::clone(&self.clock)), executor.handle().clone());
        let store = connect_store_lazy(&config, clock, handle, id)?;
        Ok(self.start(store, doctor, timing, id))
    }

    /// Keeps the leases in the memory of this process, under the same rules.
    ///
    /// Outside of a tokio runtime it gets a thread of its own, as with
    /// [`own_thread`](Self::own_thread).
    ///
    /// # Errors
    ///
    /// - [`ConnectError::Namespace`], [`ConnectError::Setting`] and [`ConnectError::Options`] for
    ///   bad settings.
    /// - [`ConnectError::NoReplicas`] when acknowledgements of replicas are asked for.
    /// - [`ConnectError::NoTimers`] inside of a tokio runtime that was built without them.
    /// - [`ConnectError::Thread`] when the system refuses a thread.
    pub fn embedded(self) -> Result<LockRuntime, ConnectError> {
        if self.timing.acks.are_asked() {
            return Err(ConnectError::NoReplicas);
        }
        let store = MemoryStore::new(Arc::clone(&self.clock), self.fencing.clone());
        self.on_store(Arc::new(store))
    }

    /// Keeps the leases in a store that was made before: a [`MemoryStore`] that runtimes share, or the
    /// `TestStore` of the feature `testing`.
    ///
    /// With the feature `unstable-store`, a store of your own.
    ///
    /// # Errors
    ///
    /// As [`embedded`](Self::embedded).
    pub fn on_store(mut self, store: Arc<dyn LockStore>) -> Result<LockRuntime, ConnectError> {
        Namespace::new(&self.namespace)?;
        self.own_thread |= Executor::current().is_none();
        let (timing, executor, id) = (self.timing()?, self.executor()?, self.entropy.runtime_id());
        OptionsError::check_kept("a ttl", timing.ttl.get(), store.longest_ttl())?;
        let clock = executor.clock(Arc::clone(&self.clock));
        let store = Arc::new(BoundedStore::new(store, clock));
        let runtime = self.start(store, Doctor { examiner: None, executor }, timing, id);
        runtime.engine.connected();
        Ok(runtime)
    }

    fn start(
        self,
        store: Arc<dyn LockStore>,
        doctor: Doctor,
        timing: Timing,
        runtime_id: RuntimeId,
    ) -> LockRuntime {
        let label = RuntimeLabel::of_process(&self.service);
        let Self { clock, entropy, rules, .. } = self;
        let executor = doctor.executor.clone();
        let clock = executor.clock(clock);
        let parts =
            EngineParts { store, clock, entropy, executor, runtime_id, label, timing, rules };
        let engine = Engine::start(parts);
        LockRuntime { _farewell: Arc::new(Farewell(Arc::clone(&engine))), engine, doctor }
    }

    /// Checks the settings, and makes what the store and the doctor of a server need.
    fn prepared<A>(
        &self,
        address: A,
    ) -> Result<(RedisConfig, Timing, RuntimeId, Doctor), ConnectError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        let (timing, executor, id) = (self.timing()?, self.executor()?, self.entropy.runtime_id());
        let config = RedisConfig::new(address)?
            .fencing(self.fencing.clone())
            .command_timeout(timing.command_timeout)
            .client_name(&format!("leasehold:{}", self.service))
            .acks(timing.acks)
            .namespace(Namespace::new(&self.namespace)?);
        let config = self.redis.iter().fold(config, |config, setting| (setting.1)(config));
        config.check()?;
        if config.address.quorum().is_some() {
            OptionsError::check_kept("a ttl", timing.ttl.get(), config.quorum.most_ttl())?;
        }
        let expected = Expected {
            ttl: timing.ttl,
            claim_window: timing.claim_window,
            command_timeout: timing.command_timeout,
            fencing: self.fencing.clone(),
            acks: timing.acks,
        };
        let clock = executor.clock(Arc::clone(&self.clock));
        let examiner =
            Some(Arc::new(Examiner { config: config.clone(), clock, runtime_id: id, expected }));
        Ok((config, timing, id, Doctor { examiner, executor }))
    }

    /// Changes how fences are made, unless what is set is out of its range.
    pub(super) fn fenced<E>(
        self,
        set: impl FnOnce(FenceSettings) -> Result<FenceSettings, E>,
    ) -> Self {
        let fencing = set(self.fencing.clone()).unwrap_or(self.fencing);
        Self { fencing, ..self }
    }

    fn with(
        mut self,
        name: &'static str,
        setting: impl Fn(RedisConfig) -> RedisConfig + Send + Sync + 'static,
    ) -> Self {
        self.redis.push(RedisSetting(name, Arc::new(setting)));
        self
    }

    fn timing(&self) -> Result<Timing, ConnectError> {
        let mut timing = self.timing;
        timing.ttl = Ttl::new(self.ttl)?;
        Ok(timing.validated()?)
    }

    fn executor(&self) -> Result<Executor, ConnectError> {
        if self.own_thread {
            return Executor::own_thread().map_err(ConnectError::Thread);
        }
        let executor = Executor::current().ok_or(ConnectError::NoTokio)?;
        if executor.has_timers(&*self.clock) { Ok(executor) } else { Err(ConnectError::NoTimers) }
    }
}

/// The name of the running program, or `service`.
fn service_of_program() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_stem());
    name.map_or_else(|| "service".into(), |name| name.to_string_lossy().into_owned())
}
