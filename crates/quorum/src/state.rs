use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak, atomic::AtomicU64},
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant, LockName, Mutex, QuorumSettings, Replication, RuntimeId, StoreError,
    Ttl, store::Listener,
};
use leasehold_redis::slot_of_lock;
use tokio::runtime::Handle;

use super::{
    claims::Claims,
    failure::{no_replicas, not_served, out},
    node::{Busy, NodeAnswer, NodeCommand, NodeReply, QuorumNode, Vote},
    records::Records,
    rules::QuorumRules,
    tally::{NodeSet, bit, majority, members},
};
use crate::durations::{HEDGES, RESTS};

/// Who hears of the locks for a runtime, and what hears the nodes for it.
type Hearing = (Weak<dyn Listener>, Arc<dyn Listener>);

/// What all commands of a store share.
pub(super) struct Quorum<N> {
    pub(super) nodes: Vec<N>,
    pub(super) health: Mutex<Vec<Health>>,
    pub(super) settings: QuorumSettings,
    pub(super) rules: QuorumRules,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    /// The tokio runtime of background tasks.
    pub(super) runtime: Handle,
    pub(super) records: Mutex<Records>,
    pub(super) claims: Claims,
    pub(super) listeners: Mutex<BTreeMap<RuntimeId, Hearing>>,
    /// The number of the next try: no other try of this process has it.
    pub(super) attempts: AtomicU64,
}

/// How much longer than usual a node may take before another one is asked in its place.
const HEDGE: u32 = 4;

impl<N: QuorumNode> Quorum<N> {
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
        majority(self.nodes.len())
    }

    pub(super) fn all(&self) -> NodeSet {
        (0..self.nodes.len()).fold(0, |all, node| all | bit(node))
    }

    /// Sends a command to a node, within the time that one may take; the reply comes with its number.
    pub(super) fn send(
        self: &Arc<Self>,
        node: usize,
        command: NodeCommand,
        deadline: Instant,
    ) -> impl Future<Output = (usize, NodeReply)> + Send + use<N> {
        let quorum = Arc::clone(self);
        async move {
            let sent_at = quorum.clock.now();
            let deadline = deadline.min(sent_at + quorum.settings.patience());
            let reply = quorum.nodes[node].send(command, deadline).await;
            quorum.note(node, sent_at, &reply);
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
        if matches!(reply, Ok(NodeAnswer::Out { rest: None })) {
            self.nodes[node].has_no_mark();
        }
        let (now, mut all) = (self.clock.now(), self.health.lock());
        let health = &mut all[node];
        match reply {
            Ok(NodeAnswer::Out { rest }) => {
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
            Ok(NodeAnswer::Out { rest }) => Some(out(&self.nodes[node].place(), *rest)),
            Ok(_) => None,
        }
    }

    /// Whether a node rests after failures.
    pub(super) fn is_unwell(&self, node: usize) -> bool {
        self.health.lock()[node].is_unwell(self.clock.now())
    }

    /// Who is asked about a lock, in this order.
    pub(super) fn order(&self, name: &LockName) -> Vec<usize> {
        let is_unwell = |node: &usize| self.is_unwell(*node) || !self.nodes[*node].is_ready();
        let unwell = members(self.all()).filter(is_unwell).fold(0, |set, node| set | bit(node));
        order(usize::from(slot_of_lock(name)), self.nodes.len(), unwell)
    }

    /// The time for ballots about a lock, in microseconds since the Unix epoch. It is that of the first node of
    /// the lock, so that all processes agree; if that has not told its time, that of the next node; if none
    /// has, that of the process.
    pub(super) fn micros(&self, name: &LockName) -> u64 {
        let (now, health) = (self.clock.now(), self.health.lock());
        let in_turn = order(usize::from(slot_of_lock(name)), health.len(), 0);
        let told = in_turn.into_iter().find_map(|node| health[node].time(now));
        told.unwrap_or_else(|| micros(self.clock.unix_time()))
    }

    /// After how long another node is asked in place of one that has not answered.
    pub(super) fn hedge(&self) -> Duration {
        hedge(self.health.lock().iter().map(Health::usual).max().unwrap_or_default())
    }
}

/// Short: it is part of what listens.
impl<N: QuorumNode> fmt::Debug for Quorum<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quorum").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

/// How well a node has answered of late, and what time it told.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    failures: u32,
    /// Until when it is asked last.
    rests_until: Option<Instant>,
    /// How long it takes as a rule.
    usual: Option<Duration>,
    /// What time it was there when the clock of this process began, in microseconds since the Unix epoch.
    origin: Option<u64>,
}

impl Health {
    pub(super) fn on_answer(&mut self, took: Duration) {
        if self.failures > 0 {
            (self.failures, self.rests_until) = (0, None);
        }
        self.usual = Some(self.usual.map_or(took, |usual| (usual * 7 + took) / 8));
    }

    pub(super) fn on_failure(&mut self, now: Instant) {
        let rest = (*RESTS.start() * 2_u32.pow(self.failures.min(8))).min(*RESTS.end());
        self.failures = self.failures.saturating_add(1);
        self.rest(now + rest);
    }

    /// It does not vote until then.
    pub(super) fn rest(&mut self, until: Instant) {
        self.rests_until = Some(until);
    }

    pub(super) fn is_unwell(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| until > now)
    }

    /// How long it takes to answer as a rule.
    pub(super) fn usual(&self) -> Duration {
        self.usual.unwrap_or_default()
    }

    /// What time it is there, in microseconds since the Unix epoch, if it has told.
    pub(super) fn time(&self, now: Instant) -> Option<u64> {
        Some(self.origin?.saturating_add(micros(now.since_origin())))
    }

    /// It has told its time, in answer to what was `sent` and `heard` then; `here` is the time of day in this
    /// process, which may be wrong. What is known moves no farther than it has to.
    pub(super) fn learn_time(&mut self, told: u64, here: u64, sent: Instant, heard: Instant) {
        let [least, most] = [heard, sent].map(|at| told.saturating_sub(micros(at.since_origin())));
        let here = here.saturating_sub(micros(heard.since_origin()));
        let known = self.origin.unwrap_or(here);
        self.origin = Some(known.clamp(least, most.max(least)));
    }
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
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

    const fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    #[test]
    fn a_node_rests_for_longer_with_each_failure_and_recovers_with_an_answer() {
        let (mut health, now) = (Health::default(), at(9_000));
        assert!(!health.is_unwell(now));
        health.on_failure(now);
        assert!(health.is_unwell(now) && !health.is_unwell(now + *RESTS.start()));
        health.on_failure(now);
        assert!(health.is_unwell(now + *RESTS.start()));
        health.on_answer(Duration::from_millis(2));
        assert!(!health.is_unwell(now));
        assert_eq!(health.usual(), Duration::from_millis(2));
    }

    #[test]
    fn a_time_that_can_be_right_is_kept_and_another_one_moved_no_farther_than_it_has_to() {
        // It told 9 s between 1 s and 3 s here: when the clock began here, it was between 6 s and 8 s there.
        let origin = |known: u64| {
            let mut health = Health::default();
            health.learn_time(9_000_000, known + 3_000_000, at(1_000), at(3_000));
            health.time(at(0))
        };
        assert_eq!(origin(7_000_000), Some(7_000_000));
        assert_eq!(origin(60_000_000), Some(8_000_000));
        assert_eq!(origin(0), Some(6_000_000));
    }

    #[test]
    fn a_node_is_believed_at_first_as_far_as_the_clock_here_may_be_wrong() {
        let mut health = Health::default();
        assert_eq!(health.time(at(0)), None);
        health.learn_time(9_000_000, 69_000_000, at(1_000), at(3_000));
        assert_eq!(health.time(at(0)), Some(8_000_000));
        health.learn_time(9_500_000, 0, at(3_000), at(3_100));
        assert_eq!(health.time(at(0)), Some(6_500_000), "it has stepped back");
    }
}
