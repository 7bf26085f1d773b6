use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, FencePolicy, FenceSettings, Instant, LockName, LockStore, RedisConfig,
    RedisStore, SystemClock, SystemEntropy, seam::Part,
};
use tokio::runtime::Handle;

use super::{
    keyspace::Keyspace,
    subject::{Capability, Snapshot, StoreUnderTest, Task},
};
use crate::RedisServer;

/// A store on a private server; time passes there by a script that shortens every life. Clones are
/// the same subject.
#[derive(Debug, Clone)]
pub struct RedisSubject {
    server: Arc<RedisServer>,
    store: Arc<RedisStore>,
    policy: FencePolicy,
}

impl RedisSubject {
    /// A store on a server of its own.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start or lets nobody in.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the server.
    pub async fn new(fencing: FenceSettings) -> Self {
        let server = Arc::new(RedisServer::start());
        let config = RedisConfig::new(&server.url()).expect("the server's address is one");
        let store = RedisStore::connect(
            &config.fencing(fencing),
            Arc::new(SystemClock),
            Handle::current(),
            SystemEntropy.runtime_id(),
        )
        .await
        .expect("a private server lets everybody in");
        Self { server, store: Arc::new(store), policy: fencing.policy }
    }

    /// The server.
    pub fn server(&self) -> &RedisServer {
        &self.server
    }

    fn keyspace(&self) -> Keyspace<'_> {
        Keyspace { server: &self.server, prefix: "" }
    }

    /// The store itself.
    pub fn redis(&self) -> &Arc<RedisStore> {
        &self.store
    }
}

impl StoreUnderTest for RedisSubject {
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>> {
        Box::pin(async move { Box::new(Self::new(fencing).await) as _ })
    }

    fn capabilities(&self) -> &'static [Capability] {
        &Capability::OF_ONE
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
        Box::pin(async move { self.server.flush_all() })
    }

    fn lose_part<'a>(&'a self, name: &'a LockName, part: Part) -> Task<'a> {
        Box::pin(async move { self.keyspace().lose_part(name, part) })
    }

    fn restart(&self) -> Task<'_> {
        Box::pin(async move { self.server.restart() })
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
