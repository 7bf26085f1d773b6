use std::sync::Arc;

use leasehold_core::{Clock, Instant, StoreError, StoreErrorKind};
use redis::{Client, ConnectionInfo, RedisError};
use tokio::{runtime::Handle, task::JoinSet};

use super::{
    classify::NOT_THERE,
    config::RedisConfig,
    liveness::{Epoch, Epochs},
    one_master::OneMaster,
    sentinel::Sentinels,
};

/// Where the server is that commands go to.
pub(super) enum Route {
    /// At one address, which leads to one master at a time.
    Server(Box<Client>, Arc<OneMaster>),
    /// At one address, as long as the server is a master of its Cluster: in the first epoch.
    Node(Box<Client>, Arc<Epochs>),
    /// Where the Sentinels say that the master is.
    Group(Arc<Sentinels>),
}

impl Route {
    /// The route to the server of a configuration; `info` has how to connect to it.
    pub(super) fn new(
        config: &RedisConfig,
        info: ConnectionInfo,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, RedisError> {
        if let Some(group) = config.address.sentinels() {
            let group = Sentinels::new(config, group, info, Arc::clone(clock));
            return Ok(Self::Group(Arc::new(group)));
        }
        let client = Box::new(Client::open(info)?);
        Ok(match &config.node {
            None => Self::Server(client, Arc::new(OneMaster::new(Arc::clone(clock)))),
            Some(node) => Self::Node(client, Arc::clone(&node.mastership)),
        })
    }

    /// Counts the servers that it has led to.
    pub(super) fn epochs(&self) -> &Epochs {
        match self {
            Self::Server(_, one) => &one.epochs,
            Self::Node(_, mastership) => mastership,
            Self::Group(group) => &group.epochs,
        }
    }

    /// What connects to the server. Of a group, the Sentinels are asked.
    pub(super) async fn client(&self, deadline: Instant) -> Result<(Client, Epoch), StoreError> {
        match self {
            Self::Server(client, one) => Ok(((**client).clone(), one.next(deadline).await?)),
            Self::Node(client, mastership) if mastership.now() == Epochs::FIRST => {
                Ok(((**client).clone(), Epochs::FIRST))
            }
            Self::Node(..) => {
                let what = "the server owns no slot of its Cluster any more";
                Err(StoreError::new(StoreErrorKind::Definite, what, NOT_THERE))
            }
            Self::Group(group) => group.client(deadline).await,
        }
    }

    /// As [`client`](Self::client), but the Sentinels are asked only if nobody else asks them; if they do
    /// not answer, what they said last stands.
    pub(super) async fn known_client(
        &self,
        deadline: Instant,
    ) -> Result<(Client, Epoch), StoreError> {
        let Self::Group(group) = self else { return self.client(deadline).await };
        match group.known() {
            Some(known) if !group.is_unwatched() => Ok(known),
            known => group.client(deadline).await.or_else(|error| known.ok_or(error)),
        }
    }

    /// Where the master of an epoch is, if the Sentinels named it and no other one since.
    pub(super) fn master(&self, epoch: Epoch) -> Option<String> {
        let Self::Group(group) = self else { return None };
        group.master(epoch)
    }

    /// Whether the Sentinels should be asked before a known master is used: nobody has asked them
    /// for a while, because there is no tokio runtime to [watch](Self::watch) on.
    pub(super) fn is_unwatched(&self) -> bool {
        matches!(self, Self::Group(group) if group.is_unwatched())
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
