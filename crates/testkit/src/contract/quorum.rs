use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, FencePolicy, FenceSettings, Instant, LockName, LockStore, QuorumSettings,
    RedisConfig, SystemClock, SystemEntropy, Ttl, connect_store, seam::Part,
};
use tokio::runtime::Handle;

use super::{
    keyspace::new_namespace,
    nodespace::Nodespace,
    subject::{Capability, Snapshot, StoreUnderTest, Task},
};
use crate::QuorumGroup;

/// A store on three servers that do not know each other; see [`QuorumSubject`].
pub type QuorumOfThree = QuorumSubject<3>;

/// A store on five servers that do not know each other; see [`QuorumSubject`].
pub type QuorumOfFive = QuorumSubject<5>;

/// A store on so many servers, which all cases share, each under a namespace of its own. All of them
/// lose what a case has them lose, and none notices.
///
/// They cannot be [restarted](Capability::Restart), for the others' sake, and
/// [processes do not queue](Capability::Line).
#[derive(Debug)]
pub struct QuorumSubject<const NODES: usize> {
    group: &'static QuorumGroup,
    store: Arc<dyn LockStore>,
    prefix: String,
}

impl<const NODES: usize> QuorumSubject<NODES> {
    /// For how long nothing changes when all commands have arrived.
    const SETTLED: Duration = Duration::from_millis(40);

    /// A store under a namespace of its own.
    ///
    /// # Panics
    ///
    /// Panics if the servers do not start or let nobody in.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes its connections; the servers stay.
    pub async fn new(fencing: FenceSettings) -> Self {
        let group = QuorumGroup::shared(NODES);
        let (namespace, prefix) = new_namespace();
        group.let_vote_under(namespace.as_str());
        // A subject is made before it is known that a case needs plain counters, which this one lacks.
        let fencing = fencing.policy(FencePolicy::TimeFloor);
        // A machine under load is no server that is down.
        let settings = QuorumSettings::default().longest_ttl(Ttl::MAX);
        let settings = settings.and_then(|settings| settings.node_timeout(Duration::from_secs(10)));
        let config = RedisConfig::new(&group.url()).expect("the quorum's address is one");
        let config = config.namespace(namespace).fencing(fencing);
        let store = connect_store(
            &config.quorum(settings.expect("settings in their ranges")),
            Arc::new(SystemClock),
            Handle::current(),
            SystemEntropy.runtime_id(),
        )
        .await
        .expect("private servers let everybody in");
        Self { group, store, prefix }
    }

    fn nodes(&self) -> impl Iterator<Item = Nodespace<'_>> {
        self.group.servers().map(|server| Nodespace { server, prefix: &self.prefix })
    }
}

impl<const NODES: usize> StoreUnderTest for QuorumSubject<NODES> {
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>> {
        Box::pin(async move { Box::new(Self::new(fencing).await) as _ })
    }

    fn capabilities(&self) -> &'static [Capability] {
        &Capability::OF_QUORUM
    }

    fn store(&self) -> Arc<dyn LockStore> {
        Arc::clone(&self.store)
    }

    fn deadline(&self) -> Instant {
        SystemClock.now() + Duration::from_secs(20)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn pass(&self, time: Duration) -> Task<'_> {
        Box::pin(async move { self.nodes().for_each(|node| node.pass(time)) })
    }

    fn server_micros(&self) -> Task<'_, u64> {
        Box::pin(async move {
            // All of them are on this machine.
            self.nodes().map(|node| node.micros()).max().unwrap_or_default()
        })
    }

    fn lose_all(&self) -> Task<'_> {
        Box::pin(async move { self.nodes().for_each(|node| node.lose()) })
    }

    fn lose_part<'a>(&'a self, name: &'a LockName, part: Part) -> Task<'a> {
        Box::pin(async move { self.nodes().for_each(|node| node.lose_part(name, part)) })
    }

    fn restart(&self) -> Task<'_> {
        unreachable!("the subject says that it cannot")
    }

    fn exhaust<'a>(&'a self, name: &'a LockName) -> Task<'a> {
        Box::pin(async move { self.nodes().for_each(|node| node.exhaust(name)) })
    }

    fn snapshot(&self) -> Task<'_, Snapshot> {
        // What is told to servers whose answers nobody needs arrives a little later.
        Box::pin(async move {
            let mut before = Snapshot::new();
            loop {
                let now: Snapshot = self.nodes().flat_map(|node| node.snapshot()).collect();
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
        Box::pin(async move { self.nodes().flat_map(|node| node.left_behind()).collect() })
    }
}
