use std::{future::ready, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::select;

use super::{
    command::{NodeAnswer, NodeCommand, Word},
    health::hedge,
    node::QuorumNode,
    store::Inner,
    tally::{Nodes, bit},
};
use crate::{
    clock::Instant,
    store::StoreError,
    types::{AcquisitionId, LockName},
};

/// What some nodes have answered to a command that all of them were sent.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Those that had the lease, and did what was asked.
    pub(crate) done: Nodes,
    /// Those that do not have it.
    pub(crate) gone: Nodes,
    /// Those where the lock is kept closed.
    pub(crate) kept: Nodes,
    pub(crate) left: Vec<Duration>,
    pub(crate) contended: bool,
    pub(crate) counter: u64,
    pub(crate) failures: Vec<StoreError>,
}

impl Round {
    fn on_answer(&mut self, node: usize, answer: Result<NodeAnswer, StoreError>) {
        match answer {
            Ok(NodeAnswer::Held { remaining, contended }) => {
                self.done |= bit(node);
                self.left.push(remaining);
                self.contended |= contended;
            }
            Ok(NodeAnswer::Kept { remaining }) => {
                self.done |= bit(node);
                self.kept |= bit(node);
                self.left.push(remaining);
            }
            Ok(NodeAnswer::Ended { counter }) => {
                self.done |= bit(node);
                self.counter = self.counter.max(counter);
            }
            Ok(NodeAnswer::Withdrawn { ended }) if ended => self.done |= bit(node),
            Ok(NodeAnswer::Gone | NodeAnswer::Out { .. } | NodeAnswer::Withdrawn { .. }) => {
                self.gone |= bit(node);
            }
            Ok(_) => self.failures.push(super::failure::strange()),
            Err(error) => self.failures.push(error),
        }
    }
}

impl<N: QuorumNode> Inner<N> {
    pub(crate) fn all(&self) -> Nodes {
        (0..self.nodes.len()).fold(0, |all, node| all | bit(node))
    }

    /// Sends a command to some nodes. Returns when it is `enough`, and the others had a moment.
    pub(crate) async fn round(
        self: &Arc<Self>,
        to: Nodes,
        command: impl Fn(usize) -> NodeCommand,
        deadline: Instant,
        enough: impl Fn(&Round) -> bool,
    ) -> Round {
        let mut round = Round::default();
        let on_reply = |node, reply| {
            round.on_answer(node, reply);
            enough(&round)
        };
        self.gather(to, command, deadline, on_reply).await;
        round
    }

    /// Sends a command to some nodes, and passes their replies on. Returns when one of them is enough, and
    /// the others had a moment; what is not answered by then goes on in the background.
    pub(crate) async fn gather(
        self: &Arc<Self>,
        to: Nodes,
        command: impl Fn(usize) -> NodeCommand,
        deadline: Instant,
        mut on_reply: impl FnMut(usize, Result<NodeAnswer, StoreError>) -> bool,
    ) {
        let each = (0..self.nodes.len()).filter(|node| to & bit(*node) != 0);
        let mut pending: FuturesUnordered<_> =
            each.map(|node| self.send(node, command(node), deadline)).collect();
        let mut is_enough = false;
        let mut timer = self.clock.sleep_until(deadline);
        loop {
            select! {
                biased;
                reply = pending.next() => {
                    let Some((node, reply)) = reply else { return };
                    if on_reply(node, reply) && !is_enough {
                        is_enough = true;
                        timer = self.clock.sleep_until(self.clock.now() + hedge(&self.health));
                    }
                }
                () = &mut timer => break,
            }
        }
        drop(self.runtime.spawn(pending.for_each(|_| ready(()))));
    }

    /// Sends a command to all nodes, for those that look or act from outside.
    pub(crate) async fn everywhere(
        self: &Arc<Self>,
        name: &LockName,
        id: AcquisitionId,
        word: &Word,
        deadline: Instant,
        enough: impl Fn(&Round) -> bool,
    ) -> Round {
        let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
        self.round(self.all(), make, deadline, enough).await
    }
}
