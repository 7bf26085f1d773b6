use leasehold_redis::{Endpoint, seam::View};
use tokio::sync::mpsc::UnboundedSender;

/// Something that a process asks of a Sentinel or a server.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Question {
    pub(in crate::sim) process: usize,
    pub(in crate::sim) about: About,
    pub(in crate::sim) answers: UnboundedSender<Told>,
}

/// What is asked, and who.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum About {
    /// A Sentinel: where the master is.
    Master { sentinel: usize },
    /// A server: whether it is a master.
    Role { node: usize },
    /// A node of a Cluster: who owns the slots.
    Slots { node: usize },
}

impl About {
    /// The server that is asked; `None` for a Sentinel.
    pub(in crate::sim) fn node(self) -> Option<usize> {
        match self {
            Self::Master { .. } => None,
            Self::Role { node } | Self::Slots { node } => Some(node),
        }
    }
}

/// An answer on its way to the process that asked.
#[derive(Debug)]
pub(in crate::sim) struct Reply {
    pub(in crate::sim) process: usize,
    pub(in crate::sim) told: Told,
    pub(in crate::sim) answers: UnboundedSender<Told>,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sim) enum Told {
    /// The master is there.
    Master(Endpoint),
    /// The server is a master, or is not.
    Role(bool),
    /// Who owns the slots, as a node sees it.
    Slots {
        /// The node.
        node: usize,
        /// What it sees.
        view: View,
    },
    /// Nobody is there.
    Nobody,
}
