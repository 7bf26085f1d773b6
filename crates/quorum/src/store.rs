use std::{
    fmt,
    sync::{Arc, Weak, atomic::AtomicU64},
    time::Duration,
};

use futures_util::FutureExt;
use leasehold_core::{
    Clock, Entropy, Instant, LockName, LockStore, Mutex, QuorumSettings, RuntimeId, StoreError,
    store::{Command, Inspect, Listener, Renewals, Reply, StoreFuture},
};
use tokio::runtime::Handle;

use super::{
    acquire::{acquire, heartbeat},
    claims::Claims,
    failure::not_served,
    inspect::{force_release, inspect, scan},
    lease::{hold, release, renew, withdraw},
    node::QuorumNode,
    pushes::listen,
    rules::QuorumRules,
    state::{Health, Quorum},
};

/// Leases on several independent masters, each held by a majority of them.
pub struct QuorumStore<N: QuorumNode>(Arc<Quorum<N>>);

impl<N: QuorumNode> QuorumStore<N> {
    /// A store on some nodes, with the clock and the jitter of its process; what goes on in the background runs
    /// on `runtime`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` unless there are 3, 5 or 7 nodes.
    pub fn new(
        nodes: Vec<N>,
        settings: QuorumSettings,
        rules: QuorumRules,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        runtime: Handle,
    ) -> Result<Self, StoreError> {
        if !matches!(nodes.len(), 3 | 5 | 7) {
            let what = format!("a quorum has 3, 5 or 7 nodes, and {} are named", nodes.len());
            return Err(not_served(what, "name all nodes of the group, each once"));
        }
        Ok(Self(Arc::new(Quorum {
            health: Mutex::new(vec![Health::default(); nodes.len()]),
            nodes,
            settings,
            rules,
            clock,
            entropy,
            runtime,
            records: Mutex::default(),
            claims: Claims::default(),
            listeners: Mutex::default(),
            attempts: AtomicU64::new(1),
        })))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[N] {
        &self.0.nodes
    }
}

impl<N: QuorumNode> LockStore for QuorumStore<N> {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        let quorum = &self.0;
        // Each is boxed by itself: otherwise a release would take the room of the largest.
        match command {
            Command::Acquire(command) => {
                let (name, life) = (command.name.clone(), command.ttl.get());
                about(name, acquire(quorum, command, life, false, deadline))
            }
            Command::Heartbeat(heartbeats) => {
                Box::pin(heartbeat(quorum, heartbeats, deadline).map(|replies| Ok(replies.into())))
            }
            Command::Hold(command) => about(command.name.clone(), hold(quorum, command, deadline)),
            Command::Release(command) => {
                about(command.name.clone(), release(quorum, command, deadline))
            }
            Command::Renew(Renewals { batch }) => Box::pin(async move {
                for one in &batch {
                    let checked = quorum.check(one.ttl, one.acks);
                    checked.map_err(|error| error.for_lock(&one.name))?;
                }
                Ok(renew(quorum, &batch, deadline).await.into())
            }),
            Command::Withdraw(command) => {
                about(command.name.clone(), withdraw(quorum, command, deadline))
            }
            Command::Inspect(Inspect { names }) => Box::pin(async move {
                let mut views = Vec::with_capacity(names.len());
                for name in &names {
                    let one = inspect(quorum, name, deadline).await;
                    views.push(one.map_err(|error| error.for_lock(name)));
                }
                Ok(views.into())
            }),
            Command::Scan(command) => {
                Box::pin(async move { Ok(scan(quorum, command, deadline).await?.into()) })
            }
            Command::ForceRelease(command) => {
                about(command.name.clone(), force_release(quorum, command, deadline))
            }
        }
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        listen(&self.0, runtime, listener);
    }

    fn longest_ttl(&self) -> Duration {
        self.0.settings.most_ttl()
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
