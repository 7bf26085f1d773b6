use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use redis::{Cmd, Value};
use tokio::runtime::Handle;

use super::{
    config::RedisConfig, dial::Dialer, lane::Lane, pool::RedisPool, script::Call, scripts,
    subscription::Subscriptions,
};
use crate::{
    clock::{Clock, Instant},
    store::{FenceSettings, KeyScheme, StoreError, StoreErrorKind},
    words::{LockName, RuntimeId},
};

/// Leases on a Redis server, version 6.2 or newer.
///
/// Acquires and releases travel on a few shared multiplexed connections, each name on always the
/// same one; renewals on a connection of their own, so that nothing queues ahead of them;
/// inspections on pooled ones; what the server tells a runtime unasked, on one more.
#[derive(Debug)]
pub struct RedisStore {
    pub(super) keys: KeyScheme,
    fencing: FenceSettings,
    commands: Vec<Lane>,
    pub(super) renewals: Lane,
    pool: RedisPool,
    pub(super) subscriptions: Subscriptions,
    clock: Arc<dyn Clock>,
}

impl RedisStore {
    /// Connects, checks the server's version, and runs every kind of command once.
    ///
    /// Connections live on `runtime`, whoever uses them.
    ///
    /// # Errors
    ///
    /// [`StoreError`], before any lock was touched: `Definite` when the server is out of reach,
    /// `Config` for a wrong password, missing rights, or a server that is too old.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind but, at worst, a probe key that lives a second.
    pub async fn connect(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Handle,
        runtime_id: RuntimeId,
    ) -> Result<Self, StoreError> {
        let dialer = Arc::new(Dialer::new(config)?);
        let lane = || Lane::new(Arc::clone(&dialer), Arc::clone(&clock), runtime.clone());
        let store = Self {
            keys: config.keys.clone(),
            fencing: config.fencing,
            commands: (0..config.connections).map(|_| lane()).collect(),
            renewals: lane(),
            pool: RedisPool::on(config, &dialer)?,
            subscriptions: Subscriptions::new(
                Arc::clone(&dialer),
                Arc::clone(&clock),
                runtime.clone(),
            ),
            clock: Arc::clone(&clock),
        };
        store.preflight(config, runtime_id).await?;
        Ok(store)
    }

    /// The names of this store's keys.
    pub fn keys(&self) -> &KeyScheme {
        &self.keys
    }

    /// The pool that inspections use.
    pub fn pool(&self) -> &RedisPool {
        &self.pool
    }

    async fn preflight(
        &self,
        config: &RedisConfig,
        runtime_id: RuntimeId,
    ) -> Result<(), StoreError> {
        let deadline = self.clock.now() + config.connect_timeout + config.command_timeout;
        let probe = LockName::new(format!("preflight:{runtime_id}")).map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "report this as a bug")
        })?;
        let write = |to: &mut Cmd| {
            self.write_keys(to, &probe);
            to.arg(self.keys.channel(runtime_id));
        };
        let call = Call { script: &scripts::PREFLIGHT, keys: 4, with_body: true, write: &write };
        // Both verbs: a server that knows the scripts would hide a missing right to send them.
        self.lane(&probe).call(call, deadline).await?;
        self.lane(&probe).call(Call { with_body: false, ..call }, deadline).await?;
        self.subscriptions.check(&self.keys.channel(runtime_id)).await
    }

    /// The lane to which a name is pinned, so that its commands do not overtake each other.
    pub(super) fn lane(&self, name: &LockName) -> &Lane {
        &self.commands[self.lane_number(name)]
    }

    /// The number of a name's lane.
    pub(super) fn lane_number(&self, name: &LockName) -> usize {
        if self.commands.len() == 1 {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let lanes = self.commands.len() as u64;
        usize::try_from(hasher.finish() % lanes).unwrap_or(0)
    }

    /// Writes down the keys of a name that the scripts which may grant it take first.
    pub(super) fn write_keys(&self, to: &mut Cmd, name: &LockName) {
        to.arg(self.keys.lease(name)).arg(self.keys.counter(name));
        to.arg(self.keys.queue(name)).arg(self.keys.waiters(name));
    }

    /// Runs a script on the lane of a name.
    pub(super) async fn run<T>(
        &self,
        name: &LockName,
        call: Call<'_>,
        deadline: Instant,
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = self.lane(name).call(call, deadline).await;
        answer.and_then(decode).map_err(|error| error.for_lock(name))
    }

    /// Runs a script on a pooled connection, out of the way of leases.
    pub(super) async fn run_apart<T>(
        &self,
        name: &LockName,
        call: Call<'_>,
        deadline: Instant,
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = self.pool.exchange(call, &*self.clock, deadline).await;
        answer.and_then(decode).map_err(|error| error.for_lock(name))
    }

    pub(super) fn retention_millis(&self) -> u64 {
        self.fencing.policy.retention_millis(self.fencing.retention)
    }
}
