use std::{
    collections::BTreeMap,
    fmt,
    ops::RangeInclusive,
    slice,
    sync::{Arc, Weak},
};

use futures_util::future::join_all;
use tokio::{runtime::Handle, task::JoinSet};

use super::{
    slot::{slot_of_lock, tag_in},
    topology::Topology,
};
use crate::{
    clock::{Clock, Instant},
    mutex::Mutex,
    redis::{
        config::RedisConfig,
        scan::step,
        store::{RedisStore, probe_named},
        subscriber::{Dialers, Dialing, Subscriptions},
    },
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        KeyScheme, Listener, LockStore, Release, ReleaseAnswer, RenewAnswer, Renewal, Scan,
        ScanPage, StoreError, StoreErrorKind, StoreFuture, Waiter, Withdraw, WithdrawAnswer,
    },
    types::{LockName, RuntimeId, RuntimeLabel},
};

/// Leases on a Redis Cluster: each name on the master that owns its slot.
///
/// Each master has a [`RedisStore`] of its own. A batch is split, as a script may not declare keys of
/// several slots; its commands travel side by side. What is published at one node on a plain channel reaches all
/// others, so one subscription, at any master, is enough. A runtime that waits at a master has one more there, to a
/// sharded channel, whose messages do not cross the bus.
#[derive(Debug)]
pub struct ClusterStore {
    nodes: Arc<Topology<RedisStore>>,
    subscriptions: Subscriptions,
    listeners: Mutex<BTreeMap<RuntimeId, Weak<dyn Listener>>>,
    keys: KeyScheme,
    /// Asks who owns the slots; ends with the store.
    _watching: JoinSet<()>,
}

impl ClusterStore {
    /// Connects, and checks every master as [`RedisStore::connect`] does.
    ///
    /// A master that is out of reach is checked before its first command, as long as another one
    /// can be reached.
    ///
    /// # Errors
    ///
    /// [`StoreError`], before any lock was touched: as [`RedisStore::connect`], and `Config` when
    /// the servers are not nodes of a Cluster.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind but, at worst, probe keys that live a second.
    pub async fn connect(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Handle,
        runtime_id: RuntimeId,
    ) -> Result<Self, StoreError> {
        let store = Self::lazy(config, Arc::clone(&clock), runtime, runtime_id)?;
        store.nodes.any(clock.now() + store.nodes.limit()).await?;
        let masters = store.nodes.masters();
        let checks = join_all(masters.iter().map(|node| node.store.check())).await;
        let is_reached = checks.iter().any(Result::is_ok);
        let failed = |error: &StoreError| !is_reached || error.kind() == StoreErrorKind::Config;
        match checks.into_iter().filter_map(Result::err).find(failed) {
            Some(error) => Err(error),
            None => Ok(store),
        }
    }

    /// Checks the settings and sends nothing: the first command connects.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the settings cannot work.
    pub fn lazy(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Handle,
        runtime_id: RuntimeId,
    ) -> Result<Self, StoreError> {
        config.check().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "correct the setting")
        })?;
        let open = {
            let (clock, runtime) = (Arc::clone(&clock), runtime.clone());
            move |config: &RedisConfig, slots: &[RangeInclusive<u16>]| {
                let (clock, runtime) = (Arc::clone(&clock), runtime.clone());
                let probe = probe_in(slots, runtime_id)?;
                RedisStore::checking(config, clock, runtime, runtime_id, probe)
            }
        };
        let home = Some(runtime.clone());
        let nodes = Topology::new(config, Arc::clone(&clock), home, Box::new(open));
        let mut watching = JoinSet::new();
        let watched = Arc::clone(&nodes);
        watching.spawn_on(async move { watched.watch().await }, &runtime);
        let dialers = Arc::clone(&nodes) as Arc<dyn Dialers>;
        let subscriptions = Subscriptions::new(dialers, clock, runtime);
        let (listeners, keys) = (Mutex::default(), config.keys.clone());
        Ok(Self { nodes, subscriptions, listeners, keys, _watching: watching })
    }

    /// The names of the store's keys.
    pub fn keys(&self) -> &KeyScheme {
        &self.keys
    }
}

/// How many locks are looked at at a time.
const LOOKS: usize = 4;

/// A lock in one of some slots, of which only checks know; `None` where there are no slots.
pub(in crate::redis) fn probe_in(
    slots: &[RangeInclusive<u16>],
    runtime: RuntimeId,
) -> Result<Option<LockName>, StoreError> {
    let tag = tag_in(slots, "preflight:");
    tag.map(|tag| probe_named(&format!("{tag}}}{runtime}"))).transpose()
}

/// Sends a command on its way until a node has run it.
macro_rules! on_its_way {
    ($self:ident, $name:expr, $deadline:expr, |$node:ident| $sending:expr) => {{
        let mut way = $self.nodes.way(slot_of_lock($name), $deadline);
        loop {
            let $node = way.next().await.map_err(|error| error.for_lock($name))?;
            let answer = $sending.await;
            if let Some(answer) = way.settle(answer) {
                break answer;
            }
        }
    }};
}

impl LockStore for ClusterStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        Box::pin(async move {
            let runtime = command.id.runtime();
            self.nodes.may_last(command.ttl);
            on_its_way!(self, command.name, command.deadline, |node| async {
                let answer = node.acquire(command).await;
                self.hear_directly(&node, runtime, is_queued(&answer));
                answer
            })
        })
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        let beat = move |one: &'a Waiter| async move {
            on_its_way!(self, &one.name, deadline, |node| {
                let batch = slice::from_ref(one);
                async {
                    let answer = only(node.heartbeat(batch, label, deadline).await);
                    self.hear_directly(&node, one.id.runtime(), is_queued(&answer));
                    answer
                }
            })
        };
        Box::pin(async move { Ok(join_all(batch.iter().map(beat)).await) })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|_, listener| listener.strong_count() > 0);
        listeners.insert(runtime, Weak::clone(&listener));
        drop(listeners);
        self.subscriptions.listen(runtime, self.keys().channel(runtime), listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        Box::pin(async move {
            on_its_way!(self, command.name, command.deadline, |node| node.hold(command))
        })
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        Box::pin(async move {
            let runtime = command.id.runtime();
            on_its_way!(self, command.name, command.deadline, |node| async {
                let answer = node.release(command).await;
                let is_queued = matches!(answer, Ok(ReleaseAnswer::NextQueued(_)));
                self.hear_directly(&node, runtime, is_queued);
                answer
            })
        })
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<RenewAnswer, StoreError>>> {
        let renew = move |one: &'a Renewal| async move {
            self.nodes.may_last(one.ttl);
            on_its_way!(self, &one.name, deadline, |node| {
                let batch = slice::from_ref(one);
                async { only(node.renew(batch, deadline).await) }
            })
        };
        Box::pin(async move { Ok(join_all(batch.iter().map(renew)).await) })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        Box::pin(async move {
            on_its_way!(self, command.name, command.deadline, |node| node.withdraw(command))
        })
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        Box::pin(
            async move { on_its_way!(self, name, deadline, |node| node.inspect(name, deadline)) },
        )
    }

    /// A few at a time, because each needs a connection.
    fn inspect_all<'a>(
        &'a self,
        names: &'a [LockName],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<Inspection, StoreError>>> {
        Box::pin(async move {
            let mut seen = Vec::with_capacity(names.len());
            for part in names.chunks(LOOKS) {
                let look = |name: &'a LockName| self.inspect(name, deadline);
                seen.extend(join_all(part.iter().map(look)).await);
            }
            Ok(seen)
        })
    }

    /// One master after the other; one that fails is left out.
    fn scan<'a>(&'a self, command: Scan<'a>) -> StoreFuture<'a, ScanPage> {
        Box::pin(async move {
            let Scan { pattern, cursor, deadline } = command;
            self.nodes.any(deadline).await?;
            let masters: BTreeMap<String, Arc<RedisStore>> = self.nodes.by_place();
            let parts = || masters.keys().map(String::as_str);
            let Some((part, at)) = cursor.next(parts()) else { return Ok(ScanPage::end()) };
            let (names, at, failed) = match step(&masters[part], pattern, at, deadline).await {
                Ok((names, at)) => (names, at, None),
                Err(error) => {
                    self.nodes.missed();
                    (Vec::new(), None, Some(error))
                }
            };
            let next = cursor.after(part, at);
            let is_over = next.next(parts()).is_none();
            Ok(ScanPage { names, failed, next: (!is_over).then_some(next) })
        })
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        Box::pin(async move {
            on_its_way!(self, command.name, command.deadline, |node| node.force_release(command))
        })
    }

    fn shard(&self, name: &LockName) -> usize {
        self.nodes.known_owner(slot_of_lock(name)).map_or(0, |node| node.number)
    }
}

impl ClusterStore {
    /// A runtime that waits at a master gets its messages from there.
    fn hear_directly(&self, node: &RedisStore, runtime: RuntimeId, is_queued: bool) {
        if is_queued && !node.dialer().is_asking {
            node.is_waited_at(runtime, || self.listeners.lock().get(&runtime).cloned());
        }
    }
}

fn is_queued(answer: &Result<AcquireAnswer, StoreError>) -> bool {
    matches!(answer, Ok(AcquireAnswer::Queued(_)))
}

/// The answer to a batch of one.
fn only<T>(answers: Result<Vec<Result<T, StoreError>>, StoreError>) -> Result<T, StoreError> {
    let missing = || Err(StoreError::new(StoreErrorKind::Corrupt, "no answer", "report this"));
    answers?.into_iter().next().unwrap_or_else(missing)
}

/// One master after the other.
impl Dialers for Topology<RedisStore> {
    fn next(self: Arc<Self>) -> Dialing {
        Box::pin(async move {
            let deadline = self.clock().now() + self.limit();
            let node = self.any(deadline).await?;
            Ok(Arc::clone(node.store.dialer()))
        })
    }
}

impl<N> fmt::Debug for Topology<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topology").finish_non_exhaustive()
    }
}
