use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Clock, ClusterStore, Entropy, FencePolicy, FenceSettings, Instant, LockName, LockStore,
    RedisConfig, SystemClock, SystemEntropy, seam::Part,
};
use tokio::runtime::Handle;

use super::{
    keyspace::{Keyspace, new_namespace},
    subject::{Capability, Snapshot, StoreUnderTest, Task},
};
use crate::cluster::RedisCluster;

/// A store on the Cluster that all cases share, each under a namespace of its own.
///
/// It cannot be [restarted](Capability::Restart), for the others' sake.
#[derive(Debug)]
pub struct ClusterSubject {
    cluster: &'static RedisCluster,
    store: Arc<ClusterStore>,
    prefix: String,
    policy: FencePolicy,
}

impl ClusterSubject {
    /// A store under a namespace of its own.
    ///
    /// # Panics
    ///
    /// Panics if the Cluster does not start or lets nobody in.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes its connections; the Cluster stays.
    pub async fn new(fencing: FenceSettings) -> Self {
        let cluster = RedisCluster::shared();
        let (namespace, prefix) = new_namespace();
        let config = RedisConfig::new(&cluster.url()).expect("the Cluster's address is one");
        let store = ClusterStore::connect(
            &config.namespace(namespace).fencing(fencing),
            Arc::new(SystemClock),
            Handle::current(),
            SystemEntropy.runtime_id(),
        )
        .await;
        let store = Arc::new(store.expect("a private Cluster lets everybody in"));
        Self { cluster, store, prefix, policy: fencing.policy }
    }

    fn keyspaces(&self) -> impl Iterator<Item = Keyspace<'_>> {
        let masters = self.cluster.masters().iter();
        masters.map(|server| Keyspace { server, prefix: &self.prefix })
    }

    /// The key of a lock, and the keys of the master that keeps it.
    fn lock(&self, name: &LockName) -> (String, Keyspace<'_>) {
        let key = self.store.keys().lease(name);
        let server = &self.cluster.masters()[RedisCluster::owner_of(&key)];
        (key, Keyspace { server, prefix: &self.prefix })
    }
}

impl StoreUnderTest for ClusterSubject {
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>> {
        Box::pin(async move { Box::new(Self::new(fencing).await) as _ })
    }

    fn capabilities(&self) -> &'static [Capability] {
        &Capability::OF_SHARED
    }

    fn store(&self) -> Arc<dyn LockStore> {
        Arc::clone(&self.store) as _
    }

    fn deadline(&self) -> Instant {
        SystemClock.now() + Duration::from_secs(20)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn pass(&self, time: Duration) -> Task<'_> {
        Box::pin(async move { self.keyspaces().for_each(|keys| keys.pass(time)) })
    }

    fn server_micros(&self) -> Task<'_, u64> {
        Box::pin(async move {
            // All of them are on this machine.
            Keyspace { server: &self.cluster.masters()[0], prefix: &self.prefix }.micros()
        })
    }

    fn lose_all(&self) -> Task<'_> {
        Box::pin(async move { self.keyspaces().for_each(|keys| keys.lose()) })
    }

    fn lose_part<'a>(&'a self, name: &'a LockName, part: Part) -> Task<'a> {
        Box::pin(async move { self.keyspaces().for_each(|keys| keys.lose_part(name, part)) })
    }

    fn restart(&self) -> Task<'_> {
        unreachable!("the subject says that it cannot")
    }

    fn exhaust<'a>(&'a self, name: &'a LockName) -> Task<'a> {
        Box::pin(async move {
            let (key, keyspace) = self.lock(name);
            keyspace.exhaust(&key);
        })
    }

    fn snapshot(&self) -> Task<'_, Snapshot> {
        Box::pin(async move { self.keyspaces().flat_map(|keys| keys.snapshot()).collect() })
    }

    fn left_behind(&self) -> Task<'_, Vec<String>> {
        Box::pin(async move {
            self.keyspaces().flat_map(|keys| keys.left_behind(self.policy)).collect()
        })
    }
}
