use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, FencePolicy, FenceSettings, Instant, LockName, LockStore, RedisConfig,
    RedisStore, SystemClock, SystemEntropy, seam::Part,
};
use tokio::runtime::Handle;

use super::{
    keyspace::{Keyspace, new_namespace},
    subject::{Capability, Snapshot, StoreUnderTest, Task},
};
use crate::{RedisServer, SentinelGroup};

/// A store on the master of the Sentinel group that all cases share, each under a namespace of its
/// own.
///
/// It cannot be [restarted](Capability::Restart), for the others' sake.
#[derive(Debug)]
pub struct SentinelSubject {
    master: &'static RedisServer,
    store: Arc<RedisStore>,
    prefix: String,
    policy: FencePolicy,
}

impl SentinelSubject {
    /// A store under a namespace of its own.
    ///
    /// # Panics
    ///
    /// Panics if the group does not start or lets nobody in.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes its connections; the group stays.
    pub async fn new(fencing: FenceSettings) -> Self {
        let group = SentinelGroup::shared();
        let (namespace, prefix) = new_namespace();
        let config = RedisConfig::new(&group.url()).expect("the group's address is one");
        let store = RedisStore::connect(
            &config.namespace(namespace).fencing(fencing),
            Arc::new(SystemClock),
            Handle::current(),
            SystemEntropy.runtime_id(),
        )
        .await
        .expect("a private group lets everybody in");
        let (master, store) = (group.master(), Arc::new(store));
        Self { master, store, prefix, policy: fencing.policy }
    }

    fn keyspace(&self) -> Keyspace<'_> {
        Keyspace { server: self.master, prefix: &self.prefix }
    }
}

impl StoreUnderTest for SentinelSubject {
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>> {
        Box::pin(async move { Box::new(Self::new(fencing).await) as _ })
    }

    fn capabilities(&self) -> &'static [Capability] {
        &Capability::OF_REPLICATED
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
        Box::pin(async move { self.keyspace().pass(time) })
    }

    fn server_micros(&self) -> Task<'_, u64> {
        Box::pin(async move { self.keyspace().micros() })
    }

    fn lose_all(&self) -> Task<'_> {
        Box::pin(async move { self.keyspace().lose() })
    }

    fn lose_part<'a>(&'a self, name: &'a LockName, part: Part) -> Task<'a> {
        Box::pin(async move { self.keyspace().lose_part(name, part) })
    }

    fn restart(&self) -> Task<'_> {
        unreachable!("the subject says that it cannot")
    }

    fn exhaust<'a>(&'a self, name: &'a LockName) -> Task<'a> {
        Box::pin(async move {
            self.keyspace().exhaust(&self.store.keys().lease(name));
        })
    }

    fn snapshot(&self) -> Task<'_, Snapshot> {
        Box::pin(async move { self.keyspace().snapshot() })
    }

    fn left_behind(&self) -> Task<'_, Vec<String>> {
        Box::pin(async move { self.keyspace().left_behind(self.policy) })
    }
}
