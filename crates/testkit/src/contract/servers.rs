use std::{
    fmt, process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, FencePolicy, FenceSettings, Instant, LockName, LockStore, Namespace,
    QuorumSettings, RuntimeId, StoreError, SystemClock, SystemEntropy, Ttl, seam::Part,
};
use leasehold_quorum::connect_quorum;
use leasehold_redis::{ClusterStore, RedisConfig, RedisStore};
use tokio::runtime::Handle;

use super::{
    keyspace::{Keyspace, Layout},
    subject::{Capability, Snapshot, StoreUnderTest, Task},
};
use crate::{QuorumGroup, RedisCluster, RedisServer, SentinelGroup};

/// Servers that keep the locks of a [`ServerSubject`].
pub trait Site: fmt::Debug + Clone + Send + Sync + 'static {
    /// What subjects on these servers can do.
    const CAPABILITIES: &'static [Capability];

    /// How each of them keeps a lock.
    const LAYOUT: Layout = Layout::Alone;

    /// Starts the servers, or finds those that all cases share.
    fn find() -> Self;

    /// Their address.
    fn url(&self) -> String;

    /// Those that keep locks.
    fn servers(&self) -> Vec<&RedisServer>;

    /// Those that keep the lock with this key.
    fn keepers(&self, _key: &str) -> Vec<&RedisServer> {
        self.servers()
    }

    /// Whether other cases use them, too: each has a namespace of its own then.
    fn is_shared(&self) -> bool {
        true
    }

    /// Adds the settings of a subject under a namespace.
    fn settings(
        &self,
        config: RedisConfig,
        _under: &Namespace,
        fencing: FenceSettings,
    ) -> RedisConfig {
        config.fencing(fencing)
    }

    /// Connects a store to them.
    fn connect(config: RedisConfig, id: RuntimeId) -> Connecting {
        Box::pin(async move {
            let clock = Arc::new(SystemClock);
            Ok(Arc::new(RedisStore::connect(&config, clock, Handle::current(), id).await?) as _)
        })
    }
}

/// A store that is being connected.
type Connecting = Task<'static, Result<Arc<dyn LockStore>, StoreError>>;

/// One server of a subject of its own.
#[derive(Debug, Clone)]
pub struct OwnServer(Arc<RedisServer>);

impl Site for OwnServer {
    const CAPABILITIES: &'static [Capability] = &Capability::OF_ONE;

    fn find() -> Self {
        Self(Arc::new(RedisServer::start()))
    }

    fn url(&self) -> String {
        self.0.url()
    }

    fn servers(&self) -> Vec<&RedisServer> {
        vec![&self.0]
    }

    fn is_shared(&self) -> bool {
        false
    }
}

/// The Sentinel group that all cases share.
#[derive(Debug, Clone)]
pub struct Sentinels {
    group: &'static SentinelGroup,
    master: &'static RedisServer,
}

impl Site for Sentinels {
    const CAPABILITIES: &'static [Capability] = &Capability::OF_REPLICATED;

    fn find() -> Self {
        let group = SentinelGroup::shared();
        Self { group, master: group.master() }
    }

    fn url(&self) -> String {
        self.group.url()
    }

    fn servers(&self) -> Vec<&RedisServer> {
        vec![self.master]
    }
}

/// The Cluster that all cases share.
#[derive(Debug, Clone)]
pub struct Cluster(&'static RedisCluster);

impl Site for Cluster {
    const CAPABILITIES: &'static [Capability] = &Capability::OF_SHARED;

    fn find() -> Self {
        Self(RedisCluster::shared())
    }

    fn url(&self) -> String {
        self.0.url()
    }

    fn servers(&self) -> Vec<&RedisServer> {
        self.0.masters().iter().collect()
    }

    fn keepers(&self, key: &str) -> Vec<&RedisServer> {
        vec![&self.0.masters()[RedisCluster::owner_of(key)]]
    }

    fn connect(config: RedisConfig, id: RuntimeId) -> Connecting {
        Box::pin(async move {
            let clock = Arc::new(SystemClock);
            Ok(Arc::new(ClusterStore::connect(&config, clock, Handle::current(), id).await?) as _)
        })
    }
}

/// So many servers that do not know each other, which all cases share. All of them lose what a case has
/// them lose, and none notices. [Processes do not queue](Capability::Line) there.
#[derive(Debug, Clone)]
pub struct Quorum<const NODES: usize>(&'static QuorumGroup);

impl<const NODES: usize> Site for Quorum<NODES> {
    const CAPABILITIES: &'static [Capability] = &Capability::OF_QUORUM;

    const LAYOUT: Layout = Layout::Node;

    fn find() -> Self {
        Self(QuorumGroup::shared(NODES))
    }

    fn url(&self) -> String {
        self.0.url()
    }

    fn servers(&self) -> Vec<&RedisServer> {
        self.0.servers().collect()
    }

    fn settings(
        &self,
        config: RedisConfig,
        under: &Namespace,
        fencing: FenceSettings,
    ) -> RedisConfig {
        self.0.let_vote_under(under.as_str());
        // A machine under load is no server that is down.
        let quorum = QuorumSettings::default().longest_ttl(Ttl::MAX);
        let quorum = quorum.and_then(|quorum| quorum.node_timeout(Duration::from_secs(10)));
        // A subject is made before it is known that a case needs plain counters, which this one lacks.
        let config = config.fencing(fencing.policy(FencePolicy::TimeFloor));
        config.quorum(quorum.expect("settings in their ranges"))
    }

    fn connect(config: RedisConfig, id: RuntimeId) -> Connecting {
        Box::pin(async move {
            let clock = Arc::new(SystemClock);
            Ok(Arc::new(connect_quorum(&config, clock, Handle::current(), id).await?) as _)
        })
    }
}

/// A store on a private server.
pub type RedisSubject = ServerSubject<OwnServer>;

/// A store on the master of the Sentinel group that all cases share.
pub type SentinelSubject = ServerSubject<Sentinels>;

/// A store on the Cluster that all cases share.
pub type ClusterSubject = ServerSubject<Cluster>;

/// A store on three servers that do not know each other.
pub type QuorumOfThree = ServerSubject<Quorum<3>>;

/// A store on five servers that do not know each other.
pub type QuorumOfFive = ServerSubject<Quorum<5>>;

/// A store on real servers, where time passes by a script that shortens every life. Clones are the same
/// subject.
///
/// Where others use the servers, too, it has a namespace of its own, and cannot be
/// [restarted](Capability::Restart).
#[derive(Debug, Clone)]
pub struct ServerSubject<S> {
    site: S,
    store: Arc<dyn LockStore>,
    namespace: Namespace,
    /// How the names of its keys begin.
    prefix: String,
    policy: FencePolicy,
}

impl<S: Site> ServerSubject<S> {
    /// For how long nothing changes when all commands have arrived at all nodes of a quorum.
    const SETTLED: Duration = Duration::from_millis(40);

    /// An empty store.
    ///
    /// # Panics
    ///
    /// Panics if the servers do not start or let nobody in.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes its connections, and kills a server of its own.
    pub async fn new(fencing: FenceSettings) -> Self {
        let (site, policy) = (S::find(), fencing.policy);
        let (namespace, prefix) =
            if site.is_shared() { new_namespace() } else { Default::default() };
        let config = RedisConfig::new(&site.url()).expect("the servers' address is one");
        let config = site.settings(config.namespace(namespace.clone()), &namespace, fencing);
        let store = S::connect(config, SystemEntropy.runtime_id()).await;
        let store = store.expect("private servers let everybody in");
        Self { site, store, namespace, prefix, policy }
    }

    /// A key of a lock: `lease`, `queue` or `waiters`.
    pub fn key(&self, name: &LockName, kind: &str) -> String {
        format!("{}:{{{name}}}:{kind}", self.namespace)
    }

    fn keyspaces<'a>(
        &'a self,
        servers: Vec<&'a RedisServer>,
    ) -> impl Iterator<Item = Keyspace<'a>> {
        let keyspace = |server| Keyspace { server, prefix: &self.prefix, layout: S::LAYOUT };
        servers.into_iter().map(keyspace)
    }

    fn all(&self) -> impl Iterator<Item = Keyspace<'_>> {
        self.keyspaces(self.site.servers())
    }
}

impl RedisSubject {
    /// The server.
    pub fn server(&self) -> &RedisServer {
        &self.site.0
    }
}

/// A namespace that no other subject has, and how the names of its keys begin.
fn new_namespace() -> (Namespace, String) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let namespace = format!("case-{}-{number}", process::id());
    let prefix = format!("{namespace}:");
    (Namespace::new(namespace).expect("letters, digits and dashes"), prefix)
}

impl<S: Site> StoreUnderTest for ServerSubject<S> {
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>> {
        Box::pin(async move { Box::new(Self::new(fencing).await) as _ })
    }

    fn capabilities(&self) -> &'static [Capability] {
        S::CAPABILITIES
    }

    fn store(&self) -> Arc<dyn LockStore> {
        Arc::clone(&self.store)
    }

    fn listened_to(&self) -> usize {
        if S::LAYOUT == Layout::Alone { 1 } else { self.site.servers().len() }
    }

    fn deadline(&self) -> Instant {
        SystemClock.now() + Duration::from_secs(20)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn pass(&self, time: Duration) -> Task<'_> {
        Box::pin(async move { self.all().for_each(|keys| keys.pass(time)) })
    }

    fn server_micros(&self) -> Task<'_, u64> {
        Box::pin(async move {
            // All of them are on this machine.
            self.site.servers().into_iter().map(RedisServer::micros).max().unwrap_or_default()
        })
    }

    fn lose_all(&self) -> Task<'_> {
        Box::pin(async move { self.all().for_each(|keys| keys.lose()) })
    }

    fn lose_part<'a>(&'a self, name: &'a LockName, part: Part) -> Task<'a> {
        Box::pin(async move { self.all().for_each(|keys| keys.lose_part(name, part)) })
    }

    fn restart(&self) -> Task<'_> {
        assert!(!self.site.is_shared(), "others use these servers");
        Box::pin(async move { self.site.servers().into_iter().for_each(RedisServer::restart) })
    }

    fn exhaust<'a>(&'a self, name: &'a LockName) -> Task<'a> {
        Box::pin(async move {
            let key = self.key(name, "lease");
            self.keyspaces(self.site.keepers(&key)).for_each(|keys| keys.exhaust(&key));
        })
    }

    fn snapshot(&self) -> Task<'_, Snapshot> {
        let look = || self.all().flat_map(|keys| keys.snapshot()).collect::<Snapshot>();
        if S::LAYOUT == Layout::Alone {
            return Box::pin(async move { look() });
        }
        // What is told to servers whose answers nobody needs arrives a little later.
        Box::pin(async move {
            let mut before = Snapshot::new();
            loop {
                let now = look();
                if before.keys().eq(now.keys())
                    && before.values().map(|piece| &piece.0).eq(now.values().map(|piece| &piece.0))
                {
                    return now;
                }
                before = now;
                SystemClock.sleep_until(SystemClock.now() + Self::SETTLED).await;
            }
        })
    }

    fn left_behind(&self) -> Task<'_, Vec<String>> {
        Box::pin(async move { self.all().flat_map(|keys| keys.left_behind(self.policy)).collect() })
    }
}
