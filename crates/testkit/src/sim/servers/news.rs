use leasehold_core::{LockName, seam::Copied};

/// What servers and Sentinels tell each other.
#[derive(Debug, Clone)]
pub(in crate::sim) enum News {
    /// A write arrives at a replica.
    Copy(Copying),
    /// A master hears that a replica has a write.
    Copied { master: usize, replica: usize, link: u64, number: u64 },
    /// A command has waited long enough for replicas.
    Waited { master: usize, number: u64 },
    /// A Sentinel hears of a new master.
    Promoted { sentinel: usize, master: usize },
    /// A replica is told to follow the present master.
    Follow { replica: usize },
    /// A node of a Cluster hears who owns a slot.
    Owner { node: usize, slot: u16, owner: usize, epoch: u64 },
}

/// A write on its way from a master to one of its replicas.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Copying {
    pub(in crate::sim) master: usize,
    pub(in crate::sim) replica: usize,
    pub(in crate::sim) link: u64,
    pub(in crate::sim) number: u64,
    /// What the master knows of each name after the write.
    pub(in crate::sim) rows: Vec<(LockName, Copied)>,
}

impl News {
    /// The server that hears it; `None` for a Sentinel.
    pub(in crate::sim) fn hearer(&self) -> Option<usize> {
        match self {
            Self::Copy(copying) => Some(copying.replica),
            Self::Copied { master, .. } | Self::Waited { master, .. } => Some(*master),
            Self::Follow { replica } => Some(*replica),
            Self::Owner { node, .. } => Some(*node),
            Self::Promoted { .. } => None,
        }
    }
}
