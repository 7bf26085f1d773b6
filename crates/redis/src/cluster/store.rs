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
        KeyScheme, Listener, Release, ReleaseAnswer, RenewAnswer, Renewals, Reply, Scan, ScanPage,
        StoreFuture, Withdraw, of_its_kind, only,
    },
};
use tokio::{runtime::Handle, task::JoinSet};

use super::{
    slot::{slot_of_lock, tag_in},
    topology::ClusterTopology,
};
use crate::{
    channel::Channel,
    command::Preamble,
    config::RedisConfig,
    store::{RedisStore, probe_named, replied},
    subscriber::Subscriptions,
};

/// Leases on a Redis Cluster: each name on the master that owns its slot.
///
/// Each master has a [`RedisStore`] of its own. A batch is split, as a script may not declare keys of
/// several slots; its commands travel side by side. What is published at one node on a plain channel reaches all
/// others, so one subscription, at any master, is enough. A runtime that waits at a master has one more there, to a
/// sharded channel, whose messages do not cross the bus.
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
    /// [`StoreError`], before any lock was touched: as [`RedisStore::connect`], also if one master refuses the
    /// login, and `Config` when the servers are not nodes of a Cluster.
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
        // A login that one master refuses is refused at once, as by a single server.
        let lasts =
            |error: &StoreError| error.kind() == StoreErrorKind::Config || error.is_refused_login();
        let failed = |error: &StoreError| !is_reached || lasts(error);
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
        let dialed = Arc::clone(&nodes);
        // One master after the other.
        let next_dialer = move || {
            let nodes = Arc::clone(&dialed);
            async move {
                let node = nodes.any(nodes.clock().now() + nodes.limit()).await?;
                Ok(Arc::clone(node.store.dialer()))
            }
            .boxed()
        };
        let subscriptions = Subscriptions::new(Arc::new(next_dialer), clock, runtime);
        let (listeners, keys) = (Mutex::default(), config.keys.clone());
        Ok(Self { nodes, subscriptions, listeners, keys, _watching: watching })
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
                let each = batch.into_iter().map(move |one| {
                    let (name, label) = (one.name.clone(), label.clone());
                    (name, Heartbeats { batch: vec![one], label }.into())
                });
                replied(self.one_by_one::<AcquireAnswer>(each.collect(), deadline).map(Ok))
            }
            Command::Renew(Renewals { batch }) => {
                let each = batch.into_iter().map(|one| {
                    self.nodes.may_last(one.ttl);
                    (one.name.clone(), Renewals { batch: vec![one] }.into())
                });
                replied(self.one_by_one::<RenewAnswer>(each.collect(), deadline).map(Ok))
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
        self.subscriptions.listen(runtime, self.keys.channel(runtime), listener);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.nodes.known_owner(slot_of_lock(name)).map_or(0, |node| node.number)
    }
}

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
        let mut attempts = self.nodes.attempts(slot_of_lock(&name), deadline);
        loop {
            let node = attempts.next().await.map_err(|error| error.for_lock(&name))?;
            let reply = node.send(command.clone(), deadline).await;
            if let Some(runtime) = reply.as_ref().ok().and_then(|reply| queued(&command, reply)) {
                self.hear_directly(&node, runtime);
            }
            if let Some(reply) = attempts.settle(reply.and_then(take)) {
                return reply;
            }
        }
    }

    /// Sends commands about one lock each, side by side.
    async fn one_by_one<T>(
        &self,
        commands: Vec<(LockName, Command)>,
        deadline: Instant,
    ) -> Vec<Result<T, StoreError>>
    where
        Vec<Result<T, StoreError>>: TryFrom<Reply, Error = Reply>,
    {
        let take = |reply| of_its_kind(reply).and_then(only);
        let each = |(name, command)| self.on_its_way(name, command, deadline, take);
        join_all(commands.into_iter().map(each)).await
    }

    /// A few at a time, because each needs a connection.
    async fn inspect(
        &self,
        Inspect { names }: Inspect,
        deadline: Instant,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        let mut seen = Vec::with_capacity(names.len());
        for part in names.chunks(INSPECTED_AT_ONCE) {
            let each = part
                .iter()
                .map(|name| (name.clone(), Inspect { names: vec![name.clone()] }.into()));
            seen.extend(self.one_by_one(each.collect(), deadline).await);
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
        let masters = self.nodes.masters().into_iter();
        let masters: BTreeMap<_, _> =
            masters.map(|node| (node.endpoint.to_string(), node)).collect();
        let parts = || masters.keys().map(String::as_str);
        let Some((part, at)) = cursor.next(parts()) else { return Ok(ScanPage::end()) };
        let (names, at, failed) = match masters[part].store.scan_step(&pattern, at, deadline).await
        {
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
        if node.dialer().is_asking() {
            return;
        }
        let Preamble { keys, tag, .. } = &*node.preamble;
        let channel = Channel { plain: keys.channel(runtime), tag: tag.clone() };
        let listener = || self.listeners.lock().get(&runtime).cloned();
        node.subscriptions.listen_once(runtime, channel, listener);
    }
}

/// The runtime that waits at a node, if that has queued it by its reply to a command about one lock.
fn queued(command: &Command, reply: &Reply) -> Option<RuntimeId> {
    let id = match (command, reply) {
        (Command::Acquire(acquire), Reply::Acquire(AcquireAnswer::Queued(_))) => acquire.id,
        (Command::Release(release), Reply::Release(ReleaseAnswer::NextQueued(_))) => release.id,
        (Command::Heartbeat(Heartbeats { batch, .. }), Reply::Heartbeat(replies))
            if matches!(replies[..], [Ok(AcquireAnswer::Queued(_))]) =>
        {
            batch.first()?.id
        }
        _ => return None,
    };
    Some(id.runtime())
}

impl fmt::Debug for ClusterStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterStore").finish_non_exhaustive()
    }
}
