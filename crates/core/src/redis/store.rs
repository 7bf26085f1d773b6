use std::sync::Arc;

use tokio::runtime::Handle;

use super::{
    batcher::{Batcher, MAX_COMMANDS},
    command::Preamble,
    config::RedisConfig,
    dial::Dialer,
    lane::{Lane, lane_number},
    pool::RedisPool,
    readiness::Readiness,
    subscriptions::Subscriptions,
};
use crate::{
    clock::Clock,
    store::{KeyScheme, StoreError, StoreErrorKind},
    types::{LockName, RuntimeId},
};

/// Leases on a Redis server, version 6.2 or newer.
///
/// One shared multiplexed connection, or a few, carry acquires and releases, each name always on the same
/// one. Renewals have a connection of their own, so that nothing queues ahead of them. Inspections
/// use a pool. One more connection brings the pushes of the server.
#[derive(Debug)]
pub struct RedisStore {
    pub(super) preamble: Arc<Preamble>,
    pub(super) commands: Vec<Batcher>,
    pub(super) renewals: Lane,
    pub(super) pool: RedisPool,
    pub(super) subscriptions: Subscriptions,
    pub(super) readiness: Arc<Readiness>,
    pub(super) clock: Arc<dyn Clock>,
}

impl RedisStore {
    /// Connects, checks the server's version, and runs every kind of command once.
    ///
    /// Connections live on `runtime`, even when another tokio runtime uses them.
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
        let store = Self::lazy(config, clock, runtime, runtime_id)?;
        store.readiness.now().await?;
        Ok(store)
    }

    /// Checks the settings and sends nothing: the first command connects, and waits until the
    /// server has been checked as [`connect`](Self::connect) does it.
    ///
    /// Until the check has passed, every command fails with the error of the last attempt, and has
    /// not run. Later commands try again, one attempt at a time.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the settings cannot work, such as an unreadable
    /// certificate.
    pub fn lazy(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Handle,
        runtime_id: RuntimeId,
    ) -> Result<Self, StoreError> {
        let dialer = Arc::new(Dialer::new(config)?);
        let lane = || Lane::new(Arc::clone(&dialer), Arc::clone(&clock), runtime.clone());
        let preamble = Arc::new(Preamble::new(config.keys.clone(), config.fencing));
        // On a Cluster, a script may not touch several slots.
        let max_commands = if config.cluster_node { 1 } else { MAX_COMMANDS };
        let batcher = || {
            let (preamble, clock) = (Arc::clone(&preamble), Arc::clone(&clock));
            Batcher::new(lane(), preamble, clock, runtime.clone(), max_commands)
        };
        let commands: Vec<_> = (0..config.connections).map(|_| batcher()).collect();
        let subscriptions =
            Subscriptions::new(Arc::clone(&dialer), Arc::clone(&clock), runtime.clone());
        let probe = LockName::new(format!("preflight:{runtime_id}")).map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "report this as a bug")
        })?;
        let pool = RedisPool::on(config, &dialer, Some(runtime.clone()))?;
        let renewals = lane();
        let readiness = Readiness {
            dialer,
            lane: commands[lane_number(&probe, commands.len())].lane().clone(),
            preamble: Arc::clone(&preamble),
            probe,
            channel: config.keys.channel(runtime_id),
            limit: config.connect_timeout.saturating_add(config.command_timeout),
            clock: Arc::clone(&clock),
            runtime,
            passed: false.into(),
            failed: Arc::default(),
        };
        Ok(Self {
            commands,
            renewals,
            pool,
            preamble,
            subscriptions,
            readiness: Arc::new(readiness),
            clock,
        })
    }

    /// The names of this store's keys.
    pub fn keys(&self) -> &KeyScheme {
        &self.preamble.keys
    }

    /// The pool that inspections use.
    pub fn pool(&self) -> &RedisPool {
        &self.pool
    }
}
