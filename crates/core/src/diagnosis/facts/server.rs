use std::time::Duration;

use super::{Group, Told};
use crate::{quorum::QuorumSettings, store::StoreError};

/// Everything that was gathered of one deployment.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) topology: Topology,
    /// The server, the master of the group, or all masters of the Cluster or of the quorum.
    pub(crate) servers: Vec<ServerFacts>,
}

/// How the servers of a deployment belong together.
#[derive(Debug)]
pub(crate) enum Topology {
    Server,
    Sentinels(Group),
    /// How many slots have an owner; the error if no node told.
    Cluster(Result<u32, StoreError>),
    /// Independent masters, of which a majority grants, and how they are used.
    Quorum(QuorumSettings),
}

impl Topology {
    /// Whether replicas take over here.
    pub(crate) fn fails_over(&self) -> bool {
        matches!(self, Self::Sentinels(_) | Self::Cluster(_))
    }

    /// After how much silence the Sentinels take a master for dead.
    pub(crate) fn down_after(&self) -> Option<Duration> {
        match self {
            Self::Sentinels(group) => group.down_after(),
            Self::Server | Self::Cluster(_) | Self::Quorum(_) => None,
        }
    }
}

/// What was gathered of one master.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    /// Where it listens.
    pub(crate) place: String,
    /// The error if no connection to it could be made.
    pub(crate) told: Result<Told, StoreError>,
}
