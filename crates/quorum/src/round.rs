use std::{future::ready, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use leasehold_core::{Instant, StoreError};
use tokio::select;

use super::{
    failure::{strange, too_few},
    node::{NodeAnswer, NodeCommand, NodeReply, QuorumNode},
    state::Quorum,
    tally::{NodeSet, bit, count, kth_longest, majority, members},
};

/// What some nodes have answered to a command that all of them were sent.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// How many nodes there are.
    nodes: usize,
    /// Those that were not sent it.
    elsewhere: NodeSet,
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
    /// A round of so many nodes before any reply; those `elsewhere` are not sent the command.
    pub(super) fn new(nodes: usize, elsewhere: NodeSet) -> Self {
        Self { nodes, elsewhere, ..Self::default() }
    }

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
            Ok(NodeAnswer::Withdrawn { ended: true }) => self.done |= bit(node),
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

    /// Whether a majority has done what was asked.
    pub(super) fn is_done(&self) -> bool {
        count(self.done) >= majority(self.nodes)
    }

    /// Whether no majority can have the lease any more.
    pub(super) fn is_gone(&self) -> bool {
        count(self.gone | self.elsewhere) >= majority(self.nodes)
    }

    /// Whether a majority has answered, or was not sent the command.
    pub(super) fn is_heard(&self) -> bool {
        count(self.heard() | self.elsewhere) >= majority(self.nodes)
    }

    /// How long a majority has the lease at least.
    pub(super) fn remaining(&mut self) -> Duration {
        kth_longest(&mut self.left, majority(self.nodes))
    }

    /// The error of a round that too few nodes have answered.
    pub(super) fn too_few(&self) -> StoreError {
        let missing = self.nodes - count(self.heard() | self.elsewhere);
        too_few(missing, self.nodes, &self.failures, true)
    }
}

/// Sends a command to some nodes. Returns when it is `enough`, and the others had a moment.
pub(super) async fn round<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    to: NodeSet,
    command: impl Fn(usize) -> NodeCommand,
    deadline: Instant,
    enough: impl Fn(&Round) -> bool,
) -> Round {
    let mut round = Round::new(quorum.nodes.len(), quorum.all() & !to);
    let sent = members(to).map(|node| quorum.send(node, command(node), deadline)).collect();
    gather(quorum, sent, deadline, quorum.hedge(), |node, reply| {
        round.on_reply(node, reply);
        enough(&round)
    })
    .await;
    round
}

/// Takes the replies of nodes. Returns when `on_reply` says that they are enough, and the others had a
/// moment; what is not answered by then goes on in the background.
pub(super) async fn gather<N: QuorumNode, T: Send>(
    quorum: &Quorum<N>,
    mut sent: FuturesUnordered<impl Future<Output = (usize, T)> + Send + 'static>,
    deadline: Instant,
    moment: Duration,
    mut on_reply: impl FnMut(usize, T) -> bool,
) {
    let mut is_enough = false;
    let mut timer = quorum.clock.sleep_until(deadline);
    loop {
        select! {
            biased;
            reply = sent.next() => {
                let Some((node, reply)) = reply else { return };
                if on_reply(node, reply) && !is_enough {
                    is_enough = true;
                    timer = quorum.clock.sleep_until(quorum.clock.now() + moment);
                }
            }
            () = &mut timer => break,
        }
    }
    drop(quorum.runtime.spawn(sent.for_each(|_| ready(()))));
}
