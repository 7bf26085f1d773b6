use std::{
    slice,
    sync::{Arc, Weak},
};

use leasehold_core::{
    Entropy, Instant, LockName, LockStore, RedisConfig, RedisStore, RuntimeId, RuntimeLabel,
    StoreError, StoreErrorKind, SystemClock, SystemEntropy,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        KeyScheme, Listener, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture, Waiter,
        Withdraw, WithdrawAnswer,
    },
};
use tokio::runtime::Handle;

use super::redis_cluster::RedisCluster;

/// A store on a Cluster: each name's commands go to the master that owns its slot, batches one by
/// one, as a script may not touch several slots. What is published reaches every master, so
/// listening on one is enough.
#[derive(Debug)]
pub struct ClusterStore {
    masters: Vec<RedisStore>,
}

impl ClusterStore {
    /// Connects to every master, with what `settings` adds to the configuration of each.
    ///
    /// # Errors
    ///
    /// [`StoreError`], the first of a master.
    ///
    /// # Panics
    ///
    /// Panics if the servers' addresses are none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes what is connected.
    pub async fn connect(
        cluster: &RedisCluster,
        settings: impl Fn(RedisConfig) -> RedisConfig,
    ) -> Result<Self, StoreError> {
        let mut masters = Vec::new();
        for (number, server) in cluster.masters().iter().enumerate() {
            let config = RedisConfig::new(&server.url()).expect("the server's address is one");
            let config = settings(config.allow_cluster_node());
            let (clock, runtime) = (Arc::new(SystemClock), Handle::current());
            let connecting = RedisStore::connect(&config, clock, runtime, welcome_at(number));
            masters.push(connecting.await?);
        }
        Ok(Self { masters })
    }

    /// The names of the store's keys.
    pub fn keys(&self) -> &KeyScheme {
        self.masters[0].keys()
    }

    fn owner(&self, name: &LockName) -> &RedisStore {
        &self.masters[RedisCluster::owner_of(&self.keys().lease(name))]
    }
}

/// A runtime whose check at connect is about a key that a master owns.
fn welcome_at(master: usize) -> RuntimeId {
    let entropy = SystemEntropy;
    let keys = KeyScheme::default();
    let is_owned = |runtime: &RuntimeId| {
        let probe = LockName::new(format!("preflight:{runtime}")).expect("a name");
        RedisCluster::owner_of(&keys.lease(&probe)) == master
    };
    let mut drawn = std::iter::repeat_with(|| entropy.runtime_id());
    drawn.find(is_owned).expect("every master owns some key")
}

impl LockStore for ClusterStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        self.owner(command.name).acquire(command)
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(batch.len());
            for one in batch {
                let master = self.owner(&one.name);
                let answer = master.heartbeat(slice::from_ref(one), label, deadline).await;
                answers.push(answer.and_then(only).and_then(|answer| answer));
            }
            Ok(answers)
        })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.masters[0].listen(runtime, listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        self.owner(command.name).hold(command)
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        self.owner(command.name).release(command)
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(batch.len());
            for one in batch {
                let answer = self.owner(&one.name).renew(slice::from_ref(one), deadline).await;
                answers.push(answer.and_then(only)?);
            }
            Ok(answers)
        })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        self.owner(command.name).withdraw(command)
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        self.owner(name).inspect(name, deadline)
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        self.owner(command.name).force_release(command)
    }
}

/// The answer to a batch of one.
fn only<T>(answers: Vec<T>) -> Result<T, StoreError> {
    let one = answers.into_iter().next();
    one.ok_or_else(|| StoreError::new(StoreErrorKind::Corrupt, "no answer", "mend the store"))
}
