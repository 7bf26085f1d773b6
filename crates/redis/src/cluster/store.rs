use std::{
    collections::BTreeMap,
    fmt,
    ops::RangeInclusive,
    sync::{Arc, Weak},
};

use futures_util::{FutureExt, future::join_all};
use leasehold_core::{
    Clock, Instant, LockName, LockStore, Mutex, RuntimeId, StoreError, StoreErrorKind,
    store::{
        Acquire, AcquireAnswer, Command, ForceRelease, Heartbeats, Hold, Inspect, Inspection,
        KeyScheme, Listener, Release, ReleaseAnswer, RenewAnswer, Renewal, Renewals, Reply, Scan,
        ScanPage, StoreFuture, Waiter, Withdraw, of_its_kind, only,
    },
};
use tokio::{runtime::Handle, task::JoinSet};

use super::{
    slot::{slot_of_lock, tag_in},
    topology::ClusterTopology,
};
use crate::{
    config::RedisConfig,
    store::{RedisStore, probe_named, replied},
    subscriber::{Dialers, Dialing, Subscriptions},
};

/// Leases on a Redis Cluster: each name on the master that owns its slot.
///
/// Each master has a [`RedisStore`] of its own. A batch is split, as a script may not declare keys of
/// several slots; its commands travel side by side. What is published at one node on a plain channel reaches all
/// others, so one subscription, at any master, is enough. A runtime that waits at a master has one more there, to a
/// sharded channel, whose messages do not cross the bus.
#[derive(Debug)]
// ADR 0034
pub struct ClusterStore {
    nodes: Arc<ClusterTopology<RedisStore>>,
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
        let checks = join_all(masters.iter().map(|node| node.store.readiness.attempt())).await;
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
        config.checked()?;
        let open = {
            let (clock, runtime) = (Arc::clone(&clock), runtime.clone());
            move |config: &RedisConfig, slots: &[RangeInclusive<u16>]| {
                let (clock, runtime) = (Arc::clone(&clock), runtime.clone());
                let probe = probe_in(slots, runtime_id)?;
                RedisStore::checking(config, clock, runtime, runtime_id, probe)
            }
        };
        let home = Some(runtime.clone());
        let nodes = ClusterTopology::new(config, Arc::clone(&clock), home, Box::new(open));
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

/// How many locks are inspected at a time.
const INSPECTED_AT_ONCE: usize = 4;

/// A lock in one of some slots, of which only checks know; `None` where there are no slots.
///
/// # Errors
///
/// [`StoreError`] if its name is none, which is a bug.
pub fn probe_in(
    slots: &[RangeInclusive<u16>],
    runtime: RuntimeId,
) -> Result<Option<LockName>, StoreError> {
    let tag = tag_in(slots, "preflight:");
    tag.map(|tag| probe_named(&format!("{tag}}}{runtime}"))).transpose()
}

impl LockStore for ClusterStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        match command {
            Command::Acquire(Acquire { ref name, ttl, .. }) => {
                self.nodes.may_last(ttl);
                Box::pin(self.on_its_way(name.clone(), command, deadline, Ok))
            }
            Command::Heartbeat(Heartbeats { batch, label }) => {
                let beat = move |one: Waiter| {
                    let (name, label) = (one.name.clone(), label.clone());
                    let alone = Heartbeats { batch: vec![one], label };
                    self.on_its_way(name, alone.into(), deadline, only_reply)
                };
                replied(join_all(batch.into_iter().map(beat)).map(Ok::<AcquireAnswers, _>))
            }
            Command::Renew(Renewals { batch }) => {
                let renew = move |one: Renewal| {
                    self.nodes.may_last(one.ttl);
                    let name = one.name.clone();
                    let alone = Renewals { batch: vec![one] };
                    self.on_its_way(name, alone.into(), deadline, only_reply)
                };
                replied(join_all(batch.into_iter().map(renew)).map(Ok::<RenewAnswers, _>))
            }
            Command::Inspect(inspect) => replied(self.inspect(inspect, deadline)),
            Command::Scan(scan) => replied(self.scan(scan, deadline)),
            Command::Hold(Hold { ref name, .. })
            | Command::Release(Release { ref name, .. })
            | Command::Withdraw(Withdraw { ref name, .. })
            | Command::ForceRelease(ForceRelease { ref name, .. }) => {
                Box::pin(self.on_its_way(name.clone(), command, deadline, Ok))
            }
        }
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|_, listener| listener.strong_count() > 0);
        listeners.insert(runtime, Weak::clone(&listener));
        drop(listeners);
        self.subscriptions.listen(runtime, self.keys().channel(runtime), listener);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.nodes.known_owner(slot_of_lock(name)).map_or(0, |node| node.number)
    }
}

type AcquireAnswers = Vec<Result<AcquireAnswer, StoreError>>;
type RenewAnswers = Vec<Result<RenewAnswer, StoreError>>;

impl ClusterStore {
    /// Sends a command about one lock until a node has run it; `take` makes the reply of what the node
    /// says.
    async fn on_its_way<T>(
        &self,
        name: LockName,
        command: Command,
        deadline: Instant,
        take: fn(Reply) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let runtime = waiting_runtime(&command);
        let mut attempts = self.nodes.attempts(slot_of_lock(&name), deadline);
        loop {
            let node = attempts.next().await.map_err(|error| error.for_lock(&name))?;
            let reply = node.send(command.clone(), deadline).await;
            if let (Some(runtime), Ok(reply)) = (runtime, &reply)
                && is_queued(reply)
            {
                self.hear_directly(&node, runtime);
            }
            if let Some(reply) = attempts.settle(reply.and_then(take)) {
                return reply;
            }
        }
    }

    /// A few at a time, because each needs a connection.
    async fn inspect(
        &self,
        Inspect { names }: Inspect,
        deadline: Instant,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        let mut seen = Vec::with_capacity(names.len());
        for part in names.chunks(INSPECTED_AT_ONCE) {
            let look = |name: &LockName| {
                let alone = Inspect { names: vec![name.clone()] };
                self.on_its_way(name.clone(), alone.into(), deadline, only_reply)
            };
            seen.extend(join_all(part.iter().map(look)).await);
        }
        Ok(seen)
    }

    /// One master after the other; one that fails is left out.
    async fn scan(
        &self,
        Scan { pattern, cursor }: Scan,
        deadline: Instant,
    ) -> Result<ScanPage, StoreError> {
        self.nodes.any(deadline).await?;
        let masters: BTreeMap<String, Arc<RedisStore>> = self.nodes.by_endpoint();
        let parts = || masters.keys().map(String::as_str);
        let Some((part, at)) = cursor.next(parts()) else { return Ok(ScanPage::end()) };
        let (names, at, failed) = match masters[part].scan_step(&pattern, at, deadline).await {
            Ok((names, at)) => (names, at, None),
            Err(error) => {
                self.nodes.missed();
                (Vec::new(), None, Some(error))
            }
        };
        let next = cursor.after(part, at);
        let is_over = next.next(parts()).is_none();
        Ok(ScanPage { names, failed, next: (!is_over).then_some(next) })
    }

    /// A runtime that waits at a master gets its messages from there.
    fn hear_directly(&self, node: &RedisStore, runtime: RuntimeId) {
        if !node.dialer().is_asking {
            node.is_waited_at(runtime, || self.listeners.lock().get(&runtime).cloned());
        }
    }
}

/// The runtime that waits if a command about one lock queues it.
fn waiting_runtime(command: &Command) -> Option<RuntimeId> {
    let id = match command {
        Command::Acquire(acquire) => acquire.id,
        Command::Heartbeat(Heartbeats { batch, .. }) => batch.first()?.id,
        Command::Release(release) => release.id,
        _ => return None,
    };
    Some(id.runtime())
}

fn is_queued(reply: &Reply) -> bool {
    match reply {
        Reply::Acquire(AcquireAnswer::Queued(_)) | Reply::Release(ReleaseAnswer::NextQueued(_)) => {
            true
        }
        Reply::Heartbeat(replies) => matches!(replies[..], [Ok(AcquireAnswer::Queued(_))]),
        _ => false,
    }
}

/// The reply of a batch of one.
fn only_reply<T>(reply: Reply) -> Result<T, StoreError>
where
    Vec<Result<T, StoreError>>: TryFrom<Reply, Error = Reply>,
{
    of_its_kind(reply).and_then(only)
}

/// One master after the other.
impl Dialers for ClusterTopology<RedisStore> {
    fn next(self: Arc<Self>) -> Dialing {
        Box::pin(async move {
            let deadline = self.clock().now() + self.limit();
            let node = self.any(deadline).await?;
            Ok(Arc::clone(node.store.dialer()))
        })
    }
}

impl<N> fmt::Debug for ClusterTopology<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterTopology").finish_non_exhaustive()
    }
}
