use std::{future::ready, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use leasehold_core::{Instant, StoreError};
use tokio::select;

use super::{
    command::{NodeAnswer, NodeCommand, NodeReply},
    failure::{strange, too_few},
    node::QuorumNode,
    nodes::Nodes,
    tally::{NodeSet, bit, count, members},
};

/// What some nodes have answered to a command that all of them were sent.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// Those that had the lease, and did what was asked.
    pub(super) done: NodeSet,
    /// Those that do not have it.
    pub(super) gone: NodeSet,
    /// Those where the lock is kept closed.
    pub(super) kept: NodeSet,
    pub(super) left: Vec<Duration>,
    pub(super) contended: bool,
    pub(super) counter: u64,
    failures: Vec<StoreError>,
}

impl Round {
    pub(super) fn on_reply(&mut self, node: usize, reply: NodeReply) {
        match reply {
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
            Ok(_) => self.failures.push(strange()),
            Err(error) => self.failures.push(error),
        }
    }

    /// Those that have answered.
    pub(super) fn heard(&self) -> NodeSet {
        self.done | self.gone
    }

    /// The error of a round that too few of so many nodes have answered.
    pub(super) fn too_few(&self, nodes: usize) -> StoreError {
        too_few(count(self.heard()), nodes, &self.failures, true)
    }
}

/// Sends a command to some nodes. Returns when it is `enough`, and the others had a moment.
pub(super) async fn round<N: QuorumNode>(
    nodes: &Arc<Nodes<N>>,
    to: NodeSet,
    command: impl Fn(usize) -> NodeCommand,
    deadline: Instant,
    enough: impl Fn(&Round) -> bool,
) -> Round {
    let mut round = Round::default();
    let sent = members(to).map(|node| nodes.send(node, command(node), deadline)).collect();
    gather(nodes, sent, deadline, nodes.hedge(), |node, reply| {
        round.on_reply(node, reply);
        enough(&round)
    })
    .await;
    round
}

/// Takes the replies of nodes. Returns when `on_reply` says that they are enough, and the others had a
/// moment; what is not answered by then goes on in the background.
pub(super) async fn gather<N: QuorumNode, T: Send>(
    nodes: &Nodes<N>,
    mut sent: FuturesUnordered<impl Future<Output = (usize, T)> + Send + 'static>,
    deadline: Instant,
    moment: Duration,
    mut on_reply: impl FnMut(usize, T) -> bool,
) {
    let mut is_enough = false;
    let mut timer = nodes.clock.sleep_until(deadline);
    loop {
        select! {
            biased;
            reply = sent.next() => {
                let Some((node, reply)) = reply else { return };
                if on_reply(node, reply) && !is_enough {
                    is_enough = true;
                    timer = nodes.clock.sleep_until(nodes.clock.now() + moment);
                }
            }
            () = &mut timer => break,
        }
    }
    drop(nodes.runtime.spawn(sent.for_each(|_| ready(()))));
}
