use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, Instant, LockName, QuorumSettings, Replication, StoreError, Ttl,
};
use leasehold_redis::slot_of_lock;
use tokio::runtime::Handle;

use super::{
    command::{Busy, NodeAnswer, NodeCommand, NodeReply, Vote},
    failure::{no_replicas, not_served, out},
    health::{Health, micros},
    node::QuorumNode,
    tally::{NodeSet, bit, majority, members},
};
use crate::durations::HEDGES;

/// How much longer than usual a node may take before another one is asked in its place.
const HEDGE: u32 = 4;

/// The nodes, what is known of them, and what it takes to ask them.
pub(super) struct Nodes<N> {
    pub(super) each: Vec<N>,
    pub(super) health: Vec<Health>,
    pub(super) settings: QuorumSettings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    /// The tokio runtime of background tasks.
    pub(super) runtime: Handle,
}

impl<N: QuorumNode> Nodes<N> {
    pub(super) fn count(&self) -> usize {
        self.each.len()
    }

    /// Whether a lease may live for so long, with such acknowledgements.
    pub(super) fn check(&self, ttl: Ttl, acks: Replication) -> Result<(), StoreError> {
        if acks.are_asked() {
            return Err(no_replicas());
        }
        let longest = self.settings.most_ttl();
        if ttl.get() > longest {
            let what =
                format!("a ttl of {ttl} is above the longest one of the quorum, {longest:?}");
            return Err(not_served(
                what,
                "choose a shorter ttl, or a longer longest_ttl in every process",
            ));
        }
        Ok(())
    }

    /// How many nodes are a majority.
    pub(super) fn majority(&self) -> usize {
        majority(self.count())
    }

    pub(super) fn all(&self) -> NodeSet {
        (0..self.count()).fold(0, |all, node| all | bit(node))
    }

    /// Sends a command to a node, within the time that one may take; the reply comes with its number.
    pub(super) fn send(
        self: &Arc<Self>,
        node: usize,
        command: NodeCommand,
        deadline: Instant,
    ) -> impl Future<Output = (usize, NodeReply)> + Send + use<N> {
        let nodes = Arc::clone(self);
        async move {
            let sent_at = nodes.clock.now();
            let deadline = deadline.min(sent_at + nodes.settings.patience());
            let reply = nodes.each[node].send(command, deadline).await;
            nodes.note(node, sent_at, &reply);
            (node, reply)
        }
    }

    /// Sends a command to some nodes in the background. Nobody waits for replies.
    pub(super) fn tell(
        self: &Arc<Self>,
        to: NodeSet,
        command: impl Fn(usize) -> NodeCommand,
        deadline: Instant,
    ) {
        for node in members(to) {
            let sending = self.send(node, command(node), deadline);
            drop(self.runtime.spawn(async move { drop(sending.await) }));
        }
    }

    /// Remembers how well a node has answered, and the time on its clock.
    pub(super) fn note(&self, node: usize, sent_at: Instant, reply: &NodeReply) {
        let (now, health) = (self.clock.now(), &self.health[node]);
        match reply {
            Ok(NodeAnswer::Out { rest }) => {
                if rest.is_none() {
                    self.each[node].has_no_mark();
                }
                let rest = rest.unwrap_or(Duration::from_millis(50)).min(Duration::from_secs(1));
                return health.rest(now + rest);
            }
            Ok(
                NodeAnswer::Granted(Vote { now: told @ 1.., .. })
                | NodeAnswer::Busy(Busy { now: told @ 1.., .. }),
            ) => health.learn_time(*told, micros(self.clock.unix_time()), sent_at, now),
            Ok(_) => {}
            Err(_) => return health.on_failure(now),
        }
        health.on_answer(now.saturating_since(sent_at));
    }

    /// Why a reply does not count.
    pub(super) fn failure(&self, node: usize, reply: &NodeReply) -> Option<StoreError> {
        match reply {
            Err(error) => Some(error.clone()),
            Ok(NodeAnswer::Out { rest }) => Some(out(&self.each[node].place(), *rest)),
            Ok(_) => None,
        }
    }

    /// Who is asked about a lock, in this order.
    pub(super) fn order(&self, name: &LockName) -> Vec<usize> {
        let now = self.clock.now();
        let is_unwell =
            |node: &usize| self.health[*node].is_unwell(now) || !self.each[*node].is_ready();
        let unwell = (0..self.count()).filter(is_unwell).fold(0, |set, node| set | bit(node));
        order(usize::from(slot_of_lock(name)), self.count(), unwell)
    }

    /// The time for ballots about a lock, in microseconds since the Unix epoch. It is that of the first node of
    /// the lock, so that all processes agree; if that has not told its time, that of the next node; if none
    /// has, that of the process.
    pub(super) fn micros(&self, name: &LockName) -> u64 {
        let now = self.clock.now();
        let in_turn = order(usize::from(slot_of_lock(name)), self.count(), 0);
        let told = in_turn.into_iter().find_map(|node| self.health[node].time(now));
        told.unwrap_or_else(|| micros(self.clock.unix_time()))
    }

    /// After how long another node is asked in place of one that has not answered.
    pub(super) fn hedge(&self) -> Duration {
        hedge(self.health.iter().map(Health::usual).max().unwrap_or_default())
    }
}

/// The order in which nodes are asked: healthy ones first. Each name begins at another node, so that all
/// processes that ask for a name ask the same nodes.
fn order(start: usize, nodes: usize, unwell: NodeSet) -> Vec<usize> {
    let mut order: Vec<_> = (0..nodes).map(|step| (start + step) % nodes).collect();
    order.sort_by_key(|node| unwell & bit(*node) != 0);
    order
}

fn hedge(usual: Duration) -> Duration {
    (*HEDGES.start() + usual * HEDGE).min(*HEDGES.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_are_unwell_are_asked_last() {
        assert_eq!(order(1, 3, 0), [1, 2, 0]);
        assert_eq!(order(1, 3, 0b010), [2, 0, 1]);
        assert_eq!(order(4, 5, 0b10001), [1, 2, 3, 4, 0]);
    }

    #[test]
    fn another_node_is_asked_after_four_times_as_long_as_usual() {
        let millis = Duration::from_millis;
        assert_eq!(hedge(millis(2)), *HEDGES.start() + millis(8));
        assert_eq!(hedge(millis(90)), *HEDGES.end());
    }
}
