use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use redis::{Client, ConnectionInfo, RedisError};
use tokio::{runtime::Handle, sync::Notify, task::JoinSet};

use super::{classify::NOT_THERE, config::RedisConfig, place::open, sentinel::Group};
use crate::{
    clock::{Clock, Instant},
    store::{StoreError, StoreErrorKind},
};

/// Counts the servers that a route has led to; a connection of an older one is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Epoch(pub(super) u64);

/// Where the server is that commands go to.
pub(super) enum Route {
    /// At one address for ever.
    Server(Box<Client>),
    /// At one address, as long as the server is a master of its Cluster.
    Node(Box<Client>, Arc<Membership>),
    /// Where the Sentinels say that the master is.
    Group(Arc<Group>),
}

/// Whether a server is one of the masters of its Cluster.
#[derive(Debug, Default)]
pub(super) struct Membership {
    has_ended: AtomicBool,
    ending: Notify,
}

impl Membership {
    /// The server owns no slot any more: its connections are not used again.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.ending.notify_waiters();
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.has_ended.load(Ordering::Acquire).into())
    }

    /// Returns when it has ended.
    async fn ended(&self) {
        let ending = self.ending.notified();
        if self.epoch() == Epoch(0) {
            ending.await;
        }
    }
}

impl Route {
    /// The route to the server of a configuration; `info` has how to connect to it.
    pub(super) fn new(
        config: &RedisConfig,
        info: ConnectionInfo,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, RedisError> {
        if let Some(group) = config.address.sentinels() {
            return Group::new(config, group, info, clock)
                .map(|group| Self::Group(Arc::new(group)));
        }
        let client = Box::new(open(config, info)?);
        Ok(match &config.node {
            None => Self::Server(client),
            Some(node) => Self::Node(client, Arc::clone(&node.membership)),
        })
    }

    /// How many servers there were before the present one.
    pub(super) fn epoch(&self) -> Epoch {
        match self {
            Self::Server(_) => Epoch(0),
            Self::Node(_, membership) => membership.epoch(),
            Self::Group(group) => group.epoch(),
        }
    }

    /// What connects to the server. Of a group, the Sentinels are asked.
    pub(super) async fn client(
        &self,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<(Client, Epoch), StoreError> {
        match self {
            Self::Server(client) => Ok(((**client).clone(), Epoch(0))),
            Self::Node(client, membership) if membership.epoch() == Epoch(0) => {
                Ok(((**client).clone(), Epoch(0)))
            }
            Self::Node(..) => {
                let what = "the server owns no slot of its Cluster any more";
                Err(StoreError::new(StoreErrorKind::Definite, what, NOT_THERE))
            }
            Self::Group(group) => group.client(clock, deadline).await,
        }
    }

    /// Where the master of an epoch is, if the Sentinels named it and no other one since.
    pub(super) fn master(&self, epoch: Epoch) -> Option<String> {
        match self {
            Self::Server(_) | Self::Node(..) => None,
            Self::Group(group) => group.master(epoch),
        }
    }

    /// Whether the Sentinels should be asked before a known master is used: nobody has asked them
    /// for a while, because there is no tokio runtime to [watch](Self::watch) on.
    pub(super) fn is_unwatched(&self) -> bool {
        matches!(self, Self::Group(group) if group.is_unwatched())
    }

    /// Returns when the server is another one than in an epoch; never for one address.
    pub(super) async fn left(&self, epoch: Epoch) {
        match self {
            Self::Server(_) => std::future::pending().await,
            Self::Node(_, membership) => membership.ended().await,
            Self::Group(group) => group.left(epoch).await,
        }
    }

    /// Asks the Sentinels from time to time, and when they tell of a switch, as long as the set
    /// lives.
    pub(super) fn watch(&self, runtime: &Handle) -> JoinSet<()> {
        let mut watching = JoinSet::new();
        if let Self::Group(group) = self {
            let group = Arc::clone(group);
            watching.spawn_on(async move { group.watch().await }, runtime);
        }
        watching
    }
}
