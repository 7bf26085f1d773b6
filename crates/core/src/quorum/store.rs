use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
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
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Heartbeat, Hold, HoldAnswer,
        Inspection, Listener, LockStore, Place, Release, ReleaseAnswer, RenewAnswer, Renewal, Scan,
        ScanPage, StoreError, StoreFuture, Waiter, Withdraw, WithdrawAnswer,
    },
    types::{Acks, LockName, RuntimeId, RuntimeLabel, Ttl},
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

    fn check(&self, ttl: Ttl, acks: Acks) -> Result<(), StoreError> {
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
        command: Acquire<'_>,
        is_heartbeat: bool,
    ) -> Result<AcquireAnswer, StoreError> {
        let Acquire { name, id, ttl, watermark, label, keeps, wait, acks, deadline } = command;
        self.check(ttl, acks)?;
        let turn = self.set_out(id, deadline).await;
        if turn.is_some()
            && let Some(granted) = self.confirm(name, id, deadline).await?
        {
            return Ok(AcquireAnswer::Granted(granted));
        }
        let (life, heard) = match wait {
            Some(heartbeat) if is_heartbeat => (heartbeat.window(ttl), heartbeat.window(ttl)),
            Some(heartbeat) => (ttl.get(), heartbeat.window(ttl)),
            None => (ttl.get(), Duration::ZERO),
        };
        let micros = self.micros(name);
        let waited = wait.map(|_| self.waiting.lock().waited(id)).unwrap_or_default();
        let (name, label) = (name.clone(), label.clone());
        let asking = Asking { name, id, life, watermark, label, keeps, waited, heard };
        let asked = match (&turn, wait) {
            (Some(turn), _) => self.ask(turn, &asking, is_heartbeat, micros, deadline).await?,
            (None, Some(_)) => Asked::Taken(Taken::soon()),
            (None, None) => return Err(still_tried()),
        };
        Ok(self.answer(asked, asking, ttl, wait))
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
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        Box::pin(async move {
            let answer = self.0.acquire(command, false).await;
            answer.map_err(|error| error.for_lock(command.name))
        })
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        let beat = move |waiter: &'a Waiter| async move {
            let Waiter { ref name, id, ttl, watermark, keeps, heartbeat } = *waiter;
            let (wait, acks) = (Some(heartbeat), Acks::NONE);
            let command = Acquire { name, id, ttl, watermark, label, keeps, wait, acks, deadline };
            let answer = self.0.acquire(command, true).await;
            answer.map_err(|error| error.for_lock(name))
        };
        Box::pin(async move { Ok(join_all(batch.iter().map(beat)).await) })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.0.listeners.lock().insert(runtime, Weak::clone(&listener));
        let ear: Arc<dyn Listener> = Arc::new(Ear::new(&self.0, listener));
        for node in &self.0.nodes {
            node.listen(runtime, Arc::downgrade(&ear));
        }
        self.0.ears.lock().insert(runtime, ear);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        Box::pin(async move {
            let checked = self.0.check(command.ttl, command.acks);
            let held = async { self.0.hold(command).await };
            let answer = match checked {
                Ok(()) => held.await,
                Err(error) => Err(error),
            };
            answer.map_err(|error| error.for_lock(command.name))
        })
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        Box::pin(async move {
            let answer = self.0.release(command).await;
            answer.map_err(|error| error.for_lock(command.name))
        })
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<RenewAnswer, StoreError>>> {
        Box::pin(async move {
            for one in batch {
                self.0.check(one.ttl, one.acks).map_err(|error| error.for_lock(&one.name))?;
            }
            Ok(self.0.renew(batch, deadline).await)
        })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        Box::pin(async move {
            let answer = self.0.withdraw(command).await;
            answer.map_err(|error| error.for_lock(command.name))
        })
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        Box::pin(async move {
            self.0.inspect(name, deadline).await.map_err(|error| error.for_lock(name))
        })
    }

    fn scan<'a>(&'a self, command: Scan<'a>) -> StoreFuture<'a, ScanPage> {
        Box::pin(self.0.scan(command))
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        Box::pin(async move {
            let answer = self.0.force_release(command).await;
            answer.map_err(|error| error.for_lock(command.name))
        })
    }
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
