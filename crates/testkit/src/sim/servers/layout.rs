use std::time::Duration;

use leasehold_core::LockName;

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
        /// A node beside them that was just set up, and knows of no owner.
        has_stranger: bool,
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
            Self::Cluster { masters, has_stranger, .. } => masters + usize::from(*has_stranger),
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
