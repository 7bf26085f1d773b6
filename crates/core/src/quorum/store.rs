use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use tokio::runtime::Handle;

use super::{
    attempt::{Asked, Asking, Taken},
    ear::Ear,
    failure::{config, no_replicas, still_tried},
    health::Health,
    node::QuorumNode,
    record::Records,
    rules::QuorumRules,
    settings::QuorumSettings,
    times::NodeTime,
    under_way::UnderWay,
    waiting::Waitings,
};
use crate::{
    clock::{Clock, Instant},
    entropy::Entropy,
    mutex::Mutex,
    redis::slot_of_lock,
    store::{
        Acquire, AcquireAnswer, Command, Heartbeat, Heartbeats, Inspect, Listener, LockStore,
        Place, Reply, StoreError, StoreFuture, Waiter,
    },
    types::{LockName, Replication, RuntimeId, Ttl},
};

/// What a quorum is made of.
#[derive(Debug)]
#[must_use = "parts do nothing themselves"]
pub struct QuorumParts<N> {
    /// The nodes: 3, 5 or 7.
    pub nodes: Vec<N>,
    /// How they are used.
    pub settings: QuorumSettings,
    /// The decisions.
    pub rules: QuorumRules,
    /// The clock of the process.
    pub clock: Arc<dyn Clock>,
    /// Its jitter.
    pub entropy: Arc<dyn Entropy>,
    /// Where what goes on in the background runs.
    pub runtime: Handle,
}

/// Leases on several independent masters, each held by a majority of them.
pub struct QuorumStore<N: QuorumNode>(Arc<Inner<N>>);

/// What all commands of a store share.
pub(crate) struct Inner<N> {
    pub(crate) nodes: Vec<N>,
    pub(crate) health: Vec<Health>,
    pub(crate) times: Vec<NodeTime>,
    pub(crate) settings: QuorumSettings,
    pub(crate) rules: QuorumRules,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) runtime: Handle,
    attempts: AtomicU64,
    pub(crate) records: Mutex<Records>,
    pub(crate) waiting: Mutex<Waitings>,
    pub(crate) under_way: Mutex<UnderWay>,
    /// What hears the nodes, for each runtime.
    ears: Mutex<BTreeMap<RuntimeId, Arc<dyn Listener>>>,
    pub(crate) listeners: Mutex<BTreeMap<RuntimeId, Weak<dyn Listener>>>,
}

impl<N: QuorumNode> QuorumStore<N> {
    /// A store on some nodes.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` unless there are 3, 5 or 7 of them.
    pub fn new(parts: QuorumParts<N>) -> Result<Self, StoreError> {
        let QuorumParts { nodes, settings, rules, clock, entropy, runtime } = parts;
        if !matches!(nodes.len(), 3 | 5 | 7) {
            let what = format!("a quorum has 3, 5 or 7 nodes, and {} are named", nodes.len());
            return Err(config(what, "name all nodes of the group, each once"));
        }
        let health = nodes.iter().map(|_| Health::default()).collect();
        let times = nodes.iter().map(|_| NodeTime::default()).collect();
        Ok(Self(Arc::new(Inner {
            nodes,
            health,
            times,
            settings,
            rules,
            clock,
            entropy,
            runtime,
            attempts: AtomicU64::new(1),
            records: Mutex::default(),
            waiting: Mutex::default(),
            under_way: Mutex::default(),
            ears: Mutex::default(),
            listeners: Mutex::default(),
        })))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[N] {
        &self.0.nodes
    }
}

impl<N: QuorumNode> Inner<N> {
    /// A number that no other try of this process has.
    pub(crate) fn next_attempt(&self) -> u64 {
        (self.rules.attempt)(self.attempts.fetch_add(1, Ordering::Relaxed))
    }

    /// The node at which all who ask for a name begin.
    pub(crate) fn start_of(&self, name: &LockName) -> usize {
        usize::from(slot_of_lock(name)) % self.nodes.len()
    }

    pub(super) fn check(&self, ttl: Ttl, acks: Replication) -> Result<(), StoreError> {
        if acks.are_asked() {
            return Err(no_replicas());
        }
        let longest = self.settings.most_ttl();
        if ttl.get() > longest {
            let what =
                format!("a ttl of {ttl} is above the longest one of the quorum, {longest:?}");
            return Err(config(
                what,
                "choose a shorter ttl, or a longer longest_ttl in every process",
            ));
        }
        Ok(())
    }

    /// Asks for a lock on behalf of a runtime that waits, or does not.
    async fn acquire(
        self: &Arc<Self>,
        command: Acquire,
        is_heartbeat: bool,
        deadline: Instant,
    ) -> Result<AcquireAnswer, StoreError> {
        let Acquire { name, id, ttl, watermark, label, keeps, wait, acks } = command;
        self.check(ttl, acks)?;
        let turn = self.set_out(id, deadline).await;
        if turn.is_some()
            && let Some(granted) = self.confirm(&name, id, deadline).await?
        {
            return Ok(AcquireAnswer::Granted(granted));
        }
        let (life, heard) = match wait {
            Some(heartbeat) if is_heartbeat => (heartbeat.window(ttl), heartbeat.window(ttl)),
            Some(heartbeat) => (ttl.get(), heartbeat.window(ttl)),
            None => (ttl.get(), Duration::ZERO),
        };
        let micros = self.micros(&name);
        let waited = wait.map(|_| self.waiting.lock().waited(id)).unwrap_or_default();
        let asking = Asking { name, id, life, watermark, label, keeps, waited, heard };
        let asked = match (&turn, wait) {
            (Some(turn), _) => self.ask(turn, &asking, is_heartbeat, micros, deadline).await?,
            (None, Some(_)) => Asked::Taken(Taken::soon()),
            (None, None) => return Err(still_tried()),
        };
        Ok(self.answer(asked, asking, ttl, wait))
    }

    /// Each as an acquire of its own.
    async fn heartbeat(
        self: &Arc<Self>,
        Heartbeats { batch, label }: Heartbeats,
        deadline: Instant,
    ) -> Vec<Result<AcquireAnswer, StoreError>> {
        let beat = async |waiter: &Waiter| {
            let Waiter { ref name, id, ttl, watermark, keeps, heartbeat } = *waiter;
            let (wait, acks) = (Some(heartbeat), Replication::NONE);
            let (name, label) = (name.clone(), label.clone());
            let command = Acquire { name, id, ttl, watermark, label, keeps, wait, acks };
            let answer = self.acquire(command, true, deadline).await;
            answer.map_err(|error| error.for_lock(&waiter.name))
        };
        join_all(batch.iter().map(beat)).await
    }

    /// What the runtime is told, and what is remembered of it.
    pub(crate) fn answer(
        self: &Arc<Self>,
        asked: Asked,
        asking: Asking,
        ttl: Ttl,
        wait: Option<Heartbeat>,
    ) -> AcquireAnswer {
        match (asked, wait) {
            (Asked::Granted(granted), _) => {
                if wait.is_some() {
                    self.waiting.lock().remove(asking.id);
                }
                AcquireAnswer::Granted(granted)
            }
            (Asked::Withdrawn, _) => AcquireAnswer::Withdrawn,
            (Asked::Taken(Taken { remaining, keeps, .. }), None) => {
                AcquireAnswer::Busy { remaining, keeps }
            }
            (Asked::Taken(Taken { remaining, older, waited, .. }), Some(heartbeat)) => {
                let waited = waited.max(asking.waited);
                self.wait(Asking { waited, ..asking }, ttl, heartbeat);
                AcquireAnswer::Queued(Place { remaining, ahead: older })
            }
        }
    }
}

impl<N: QuorumNode> LockStore for QuorumStore<N> {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        let inner = &self.0;
        // Each is boxed by itself: otherwise a release would take the room of the largest.
        match command {
            Command::Acquire(acquire) => {
                about(acquire.name.clone(), inner.acquire(acquire, false, deadline))
            }
            Command::Heartbeat(heartbeats) => {
                Box::pin(inner.heartbeat(heartbeats, deadline).map(|replies| Ok(replies.into())))
            }
            Command::Hold(hold) => about(hold.name.clone(), inner.hold(hold, deadline)),
            Command::Release(release) => {
                about(release.name.clone(), inner.release(release, deadline))
            }
            Command::Renew(renewals) => Box::pin(async move {
                for one in &renewals.batch {
                    inner.check(one.ttl, one.acks).map_err(|error| error.for_lock(&one.name))?;
                }
                Ok(inner.renew(&renewals.batch, deadline).await.into())
            }),
            Command::Withdraw(withdraw) => {
                about(withdraw.name.clone(), inner.withdraw(withdraw, deadline))
            }
            Command::Inspect(Inspect { names }) => Box::pin(async move {
                let mut seen = Vec::with_capacity(names.len());
                for name in &names {
                    let one = inner.inspect(name, deadline).await;
                    seen.push(one.map_err(|error| error.for_lock(name)));
                }
                Ok(seen.into())
            }),
            Command::Scan(scan) => {
                Box::pin(async move { Ok(inner.scan(scan, deadline).await?.into()) })
            }
            Command::ForceRelease(force) => {
                about(force.name.clone(), inner.force_release(force, deadline))
            }
        }
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.0.listeners.lock().insert(runtime, Weak::clone(&listener));
        let ear: Arc<dyn Listener> = Arc::new(Ear::new(&self.0, listener));
        for node in &self.0.nodes {
            node.listen(runtime, Arc::downgrade(&ear));
        }
        self.0.ears.lock().insert(runtime, ear);
    }
}

/// The reply to a command about a lock, which its failure names.
fn about<'a, T: Into<Reply>>(
    name: LockName,
    reply: impl Future<Output = Result<T, StoreError>> + Send + 'a,
) -> StoreFuture<'a, Reply> {
    Box::pin(reply.map(move |reply| match reply {
        Ok(reply) => Ok(reply.into()),
        Err(error) => Err(error.for_lock(&name)),
    }))
}

impl<N: QuorumNode> fmt::Debug for QuorumStore<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuorumStore").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}

/// Short: it is part of what listens.
impl<N: QuorumNode> fmt::Debug for Inner<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quorum").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
