use std::{
    fmt,
    sync::{Arc, Weak},
};

use futures_util::FutureExt;
use leasehold_core::{
    Clock, Entropy, Instant, LockName, LockStore, QuorumSettings, RuntimeId, StoreError,
    store::{Command, Inspect, Listener, Renewals, Reply, StoreFuture},
};
use tokio::runtime::Handle;

use super::{
    acquire::{acquire, heartbeat},
    failure::not_served,
    health::Health,
    hold::hold,
    inspect::{force_release, inspect},
    node::QuorumNode,
    nodes::Nodes,
    pushes::listen,
    release::{release, withdraw},
    renew::renew,
    rules::QuorumRules,
    scan::scan,
    state::Quorum,
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
pub struct QuorumStore<N: QuorumNode>(Arc<Quorum<N>>);

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
            return Err(not_served(what, "name all nodes of the group, each once"));
        }
        let health = nodes.iter().map(|_| Health::default()).collect();
        let nodes = Nodes { each: nodes, health, settings, clock, entropy, runtime };
        Ok(Self(Arc::new(Quorum::new(nodes, rules))))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[N] {
        &self.0.nodes.each
    }
}

impl<N: QuorumNode> LockStore for QuorumStore<N> {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        let quorum = &self.0;
        // Each is boxed by itself: otherwise a release would take the room of the largest.
        match command {
            Command::Acquire(command) => {
                let terms = (command.ttl.get(), false);
                about(command.name.clone(), acquire(quorum, command, terms, deadline))
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
                    let checked = quorum.nodes.check(one.ttl, one.acks);
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
                Box::pin(async move { Ok(scan(&quorum.nodes, command, deadline).await?.into()) })
            }
            Command::ForceRelease(command) => {
                about(command.name.clone(), force_release(quorum, command, deadline))
            }
        }
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        listen(&self.0, runtime, listener);
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
        f.debug_struct("QuorumStore").field("nodes", &self.0.nodes.each).finish_non_exhaustive()
    }
}
