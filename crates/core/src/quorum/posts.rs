use std::{
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    command::NodeCommand,
    gathering::{Gathering, Told},
    node::QuorumNode,
    store::Inner,
    tally::{MOST_NODES, Nodes, bit},
};
use crate::{clock::Instant, types::LockName};

/// One command that travels with others to several nodes; there may be none.
pub(crate) struct Posts {
    gathering: Option<Arc<Gathering>>,
    numbers: [u64; MOST_NODES],
    to: Nodes,
    is_hurried: bool,
    sent_at: Instant,
}

impl Posts {
    /// Nothing yet.
    pub(crate) fn none() -> Self {
        Self {
            gathering: None,
            numbers: [0; MOST_NODES],
            to: 0,
            is_hurried: false,
            sent_at: Instant::default(),
        }
    }

    /// Sends a command to one more node.
    pub(crate) fn add<N: QuorumNode>(
        &mut self,
        inner: &Inner<N>,
        node: usize,
        command: NodeCommand,
        (now, deadline): (Instant, Instant),
    ) {
        let gathering = self.gathering.get_or_insert_with(Arc::default);
        gathering.expect(node);
        self.to |= bit(node);
        self.sent_at = now;
        let deadline = deadline.min(now + inner.settings.patience());
        self.numbers[node] = inner.nodes[node].post(command, deadline, gathering, node);
    }

    /// When the last of them was sent.
    pub(crate) fn sent_at(&self) -> Instant {
        self.sent_at
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<(usize, Told)>> {
        self.gathering.as_ref().map_or(Poll::Ready(None), |gathering| gathering.poll(cx))
    }

    pub(crate) fn are_over(&self) -> bool {
        self.gathering.as_ref().is_none_or(|gathering| gathering.is_over())
    }

    /// Whether they wait with patience.
    pub(crate) fn are_unhurried(&self) -> bool {
        !self.is_hurried && !self.are_over()
    }

    /// They have waited for long: each node that has not answered needs a courier.
    pub(crate) fn hurry<N: QuorumNode>(&mut self, inner: &Inner<N>, name: &LockName) {
        self.is_hurried = true;
        for node in (0..inner.nodes.len()).filter(|node| self.to & bit(*node) != 0) {
            inner.nodes[node].hurry(name, self.numbers[node]);
        }
        if let Some(gathering) = &self.gathering {
            gathering.hurry();
        }
    }

    /// The answers are not needed any more.
    pub(crate) fn close(&mut self) {
        if let Some(gathering) = self.gathering.take() {
            gathering.close();
        }
    }

    /// The answers are not waited for any more, and what was sent is to arrive.
    pub(crate) fn leave(&mut self) {
        self.gathering = None;
    }
}

/// Dropped with its caller, what was not sent need not be.
impl Drop for Posts {
    fn drop(&mut self) {
        self.close();
    }
}
