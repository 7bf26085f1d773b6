use std::time::Duration;

use leasehold_core::LockName;

/// A node that is not one of a Cluster's masters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// It was just set up, and knows of no owner.
    New,
    /// It owns all slots of a Cluster of its own, which has seen more changes.
    OfAnother,
}

/// What servers a world has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// One, for ever.
    One,
    /// A master, replicas, and three Sentinels that name the master.
    Group {
        /// By how much the clock of each server is behind; the first one is the master.
        behind: Vec<Duration>,
        /// The longest time that a write usually takes to a replica.
        lag: Duration,
        /// Whether so many replicas acknowledge what is believed that no failover loses it.
        has_acks: bool,
        /// A Sentinel that always names the server that was the master first.
        has_liar: bool,
    },
    /// Masters that share the slots.
    Cluster {
        /// How many.
        masters: usize,
        /// A node beside them.
        stranger: Option<Stranger>,
        /// The locks that there are.
        names: Vec<LockName>,
    },
}

impl Layout {
    /// How many Sentinels a group has.
    pub(in crate::sim) const SENTINELS: usize = 3;

    /// How many servers there are.
    pub(in crate::sim) fn nodes(&self) -> usize {
        match self {
            Self::One => 1,
            Self::Group { behind, .. } => behind.len(),
            Self::Cluster { masters, stranger, .. } => masters + usize::from(stranger.is_some()),
        }
    }

    /// The nodes that the users of a Cluster have written.
    pub(in crate::sim) fn seeds(&self) -> usize {
        match self {
            Self::Cluster { masters, stranger: Some(Stranger::OfAnother), .. } => *masters,
            _ => self.nodes(),
        }
    }

    /// Whether no failover loses what is believed.
    pub(in crate::sim) fn has_acks(&self) -> bool {
        matches!(self, Self::Group { has_acks: true, .. })
    }

    /// By how much the clock of a server is behind.
    pub(in crate::sim) fn behind(&self, node: usize) -> Duration {
        match self {
            Self::Group { behind, .. } => behind[node],
            _ => Duration::ZERO,
        }
    }

    /// The longest time that a write usually takes to a replica.
    pub(in crate::sim) fn lag(&self) -> Duration {
        match self {
            Self::Group { lag, .. } => *lag,
            _ => Duration::ZERO,
        }
    }
}
