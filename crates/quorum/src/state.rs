use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use leasehold_core::{Mutex, RuntimeId, store::Listener};

use super::{claims::Claims, node::QuorumNode, nodes::Nodes, records::Records, rules::QuorumRules};

/// Who hears of the locks for a runtime, and what hears the nodes for it.
type Hearing = (Weak<dyn Listener>, Arc<dyn Listener>);

/// What all commands of a store share.
pub(super) struct Quorum<N> {
    pub(super) nodes: Arc<Nodes<N>>,
    pub(super) rules: QuorumRules,
    pub(super) records: Mutex<Records>,
    pub(super) claims: Claims,
    pub(super) listeners: Mutex<BTreeMap<RuntimeId, Hearing>>,
    attempts: AtomicU64,
}

impl<N: QuorumNode> Quorum<N> {
    pub(super) fn new(nodes: Nodes<N>, rules: QuorumRules) -> Self {
        Self {
            nodes: Arc::new(nodes),
            rules,
            records: Mutex::default(),
            claims: Claims::default(),
            listeners: Mutex::default(),
            attempts: AtomicU64::new(1),
        }
    }

    /// A number that no other try of this process has.
    pub(super) fn next_attempt(&self) -> u64 {
        (self.rules.attempt)(self.attempts.fetch_add(1, Ordering::Relaxed))
    }
}

/// Short: it is part of what listens.
impl<N: QuorumNode> fmt::Debug for Quorum<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quorum").field("nodes", &self.nodes.each).finish_non_exhaustive()
    }
}
