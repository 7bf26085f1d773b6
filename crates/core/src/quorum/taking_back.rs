use std::{sync::Arc, time::Duration};

use super::{
    command::{NodeCommand, Word},
    node::QuorumNode,
    store::Inner,
    tally::{Tally, bit},
};
use crate::{
    backoff::backoff,
    types::{AcquisitionId, LockName},
};

/// A try under way: dropped before it is done, it is taken back wherever it may have come to.
pub(crate) struct TakeBack<N: QuorumNode> {
    pub(crate) inner: Arc<Inner<N>>,
    pub(crate) name: LockName,
    pub(crate) id: AcquisitionId,
    pub(crate) attempt: u64,
    pub(crate) tally: Tally,
    /// Whether nodes that were asked earlier may remember that it waits.
    pub(crate) has_waited: bool,
    pub(crate) is_done: bool,
}

/// How often a try is taken back at a node that does not answer.
const TAKE_BACKS: u32 = 4;

impl<N: QuorumNode> Drop for TakeBack<N> {
    fn drop(&mut self) {
        let tally = &self.tally;
        let (granted, unheard) = (tally.granted(), tally.unheard());
        if self.is_done || !self.inner.rules.takes_back || granted | unheard == 0 {
            return;
        }
        for node in 0..self.inner.nodes.len() {
            if (granted | unheard) & bit(node) == 0 {
                continue;
            }
            let (inner, marks) = (Arc::clone(&self.inner), granted & bit(node) == 0);
            let word = Word::End { attempt: self.attempt, fence: 0, marks };
            let command = NodeCommand { name: self.name.clone(), id: self.id, word };
            drop(self.inner.runtime.spawn(async move { inner.take_back(node, command).await }));
        }
    }
}

impl<N: QuorumNode> Inner<N> {
    async fn take_back(self: Arc<Self>, node: usize, command: NodeCommand) {
        for failures in 0..TAKE_BACKS {
            let deadline = self.clock.now() + self.settings.patience();
            if self.send(node, command.clone(), deadline).await.1.is_ok() {
                return;
            }
            let (shortest, longest) = (Duration::from_millis(50), Duration::from_secs(2));
            let pause = backoff(shortest, longest, failures, self.entropy.fraction());
            self.clock.sleep_until(self.clock.now() + pause).await;
        }
    }
}
