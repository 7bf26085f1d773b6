use std::time::Duration;

use super::node::{Busy, NodeAnswer, Vote};

/// The most nodes of a quorum.
pub(crate) const MOST_NODES: usize = 7;

/// How many nodes are a majority of `nodes`.
pub fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// A set of nodes, with one bit for each.
pub(crate) type NodeSet = u8;

/// The bit of a node.
pub(crate) fn bit(node: usize) -> NodeSet {
    1 << node
}

/// How many nodes a set has.
pub(crate) fn count(nodes: NodeSet) -> usize {
    nodes.count_ones() as usize
}

/// The nodes of a set.
pub(crate) fn members(nodes: NodeSet) -> impl Iterator<Item = usize> {
    (0..MOST_NODES).filter(move |node| nodes & bit(*node) != 0)
}

/// What the nodes have answered to one try.
#[derive(Debug, Clone, Default)]
pub struct VoteCount {
    nodes: usize,
    votes: [Option<Vote>; MOST_NODES],
    /// The nodes that were asked.
    asked: NodeSet,
    granted: NodeSet,
    busy: NodeSet,
    failed: NodeSet,
    is_withdrawn: bool,
    /// How long until nodes that are busy may be free.
    waits: Vec<Duration>,
    /// What those nodes said together.
    refusal: Refusal,
}

/// What the nodes said that refused a lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// When a majority may be free.
    pub(crate) remaining: Duration,
    /// Whether a holder may keep the lock idle.
    pub(crate) keeps: bool,
    /// How many others have waited for longer, as far as the nodes know.
    pub(crate) older: u64,
    /// For how long nodes have seen this acquisition wait.
    pub(crate) waited: Duration,
}

impl Refusal {
    /// It is unknown who has the lock; another try may have it soon.
    pub(crate) fn soon() -> Self {
        Self { remaining: Duration::from_millis(2), ..Self::default() }
    }
}

/// What the answers so far mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It depends on further answers.
    Open,
    /// A majority has granted the lease.
    Granted,
    /// A majority is taken by others.
    Taken,
    /// A majority has answered, and neither one of grants nor one of others is possible.
    Split,
    /// Too many nodes did not answer.
    TooFew,
    /// The acquisition is dead.
    Withdrawn,
}

impl VoteCount {
    /// No answers of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes, ..Self::default() }
    }

    /// A node is asked.
    pub fn on_ask(&mut self, node: usize) {
        self.asked |= bit(node);
    }

    /// A node has answered, or failed to.
    pub fn on_answer(&mut self, node: usize, answer: Option<&NodeAnswer>) {
        match answer {
            Some(NodeAnswer::Granted(vote)) => {
                self.votes[node] = Some(*vote);
                self.granted |= bit(node);
            }
            Some(NodeAnswer::Busy(Busy { remaining, keeps, older, waited, .. })) => {
                self.busy |= bit(node);
                self.waits.push(*remaining);
                let known = &mut self.refusal;
                known.keeps |= keeps;
                known.older = known.older.max(*older);
                known.waited = known.waited.max(*waited);
            }
            Some(NodeAnswer::Withdrawn { .. }) => self.is_withdrawn = true,
            _ => self.failed |= bit(node),
        }
    }

    /// What follows from the answers.
    pub fn decision(&self) -> Decision {
        self.decision_of(count(self.granted))
    }

    /// What follows if so many grants count.
    pub fn decision_of(&self, granted: usize) -> Decision {
        let (needed, spare) = (majority(self.nodes), self.nodes - majority(self.nodes));
        if self.is_withdrawn {
            Decision::Withdrawn
        } else if granted >= needed {
            Decision::Granted
        } else if count(self.failed) > spare {
            Decision::TooFew
        } else if count(self.busy) >= needed {
            Decision::Taken
        } else if count(self.busy | self.failed) > spare && self.majority_answered() {
            Decision::Split
        } else {
            Decision::Open
        }
    }

    /// Whether a majority has answered. What fewer say may be an outage.
    pub(crate) fn majority_answered(&self) -> bool {
        count(self.granted | self.busy) >= majority(self.nodes)
    }

    /// How many of the asked nodes have granted or may still grant.
    pub(crate) fn hopeful(&self) -> usize {
        count(self.asked & !(self.busy | self.failed))
    }

    /// The nodes that granted.
    pub(crate) fn granted(&self) -> NodeSet {
        self.granted
    }

    /// The nodes where others have the lock, or are before this acquisition.
    pub(crate) fn busy(&self) -> NodeSet {
        self.busy
    }

    /// The nodes that may have granted without saying so.
    pub(crate) fn unheard(&self) -> NodeSet {
        self.asked & !(self.granted | self.busy)
    }

    /// The votes of some of the nodes.
    pub fn votes(&self, of: u8) -> impl Iterator<Item = (usize, Vote)> + '_ {
        let votes = self.votes.iter().enumerate();
        votes
            .filter_map(move |(node, vote)| Some((node, (*vote)?)))
            .filter(move |(node, _)| of & bit(*node) != 0)
    }

    /// What the nodes said that refused. A majority may be free as soon as enough of the busy nodes are.
    pub(crate) fn refusal(&self) -> Refusal {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let free = self.nodes - count(self.busy);
        let missing = majority(self.nodes).saturating_sub(free).max(1);
        let remaining = waits.get(missing - 1).or_else(|| waits.last()).copied();
        Refusal { remaining: remaining.unwrap_or_default(), ..self.refusal }
    }
}

/// How long at least `needed` of the leases last: the shortest of the `needed` longest ones.
pub(super) fn kth_longest(left: &mut [Duration], needed: usize) -> Duration {
    left.sort_unstable_by(|a, b| b.cmp(a));
    left.get(needed.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(before: u64) -> NodeAnswer {
        NodeAnswer::Granted(Vote {
            before,
            accepted: true,
            least: 0,
            remaining: Duration::from_secs(1),
            contended: false,
            now: 0,
        })
    }

    fn busy(millis: u64) -> NodeAnswer {
        let remaining = Duration::from_millis(millis);
        let (holder, waited) = (None, Duration::ZERO);
        NodeAnswer::Busy(Busy { remaining, keeps: false, older: 0, holder, waited, now: 0 })
    }

    /// The decision when nodes have answered one after the other.
    fn decision(nodes: usize, answers: &[(usize, Option<NodeAnswer>)]) -> Decision {
        let mut votes = VoteCount::new(nodes);
        for (node, answer) in answers {
            votes.on_ask(*node);
            votes.on_answer(*node, answer.as_ref());
        }
        votes.decision()
    }

    #[test]
    fn a_majority_of_all_nodes_decides() {
        let yes = || Some(vote(7));
        let no = || Some(busy(5));
        assert_eq!(decision(3, &[(0, yes())]), Decision::Open);
        assert_eq!(decision(3, &[(0, yes()), (2, yes())]), Decision::Granted);
        assert_eq!(decision(3, &[(0, yes()), (0, yes())]), Decision::Open);
        assert_eq!(decision(3, &[(0, yes()), (1, no())]), Decision::Open);
        assert_eq!(decision(3, &[(0, no()), (1, no())]), Decision::Taken);
        assert_eq!(decision(3, &[(0, yes()), (1, no()), (2, None)]), Decision::Split);
        assert_eq!(decision(3, &[(1, None), (2, None)]), Decision::TooFew);
        assert_eq!(decision(5, &[(0, yes()), (1, yes()), (2, no())]), Decision::Open);
        assert_eq!(
            decision(5, &[(0, yes()), (1, yes()), (2, no()), (3, no()), (4, None)]),
            Decision::Split
        );
        // What is told of an outage is told by a majority, or not at all.
        assert_eq!(decision(3, &[(0, no()), (1, None)]), Decision::Open);
        assert_eq!(decision(3, &[(0, no()), (1, None), (2, None)]), Decision::TooFew);
        assert_eq!(decision(3, &[(0, no()), (1, None), (2, yes())]), Decision::Split);
        assert_eq!(decision(5, &[(0, no()), (1, no()), (2, None)]), Decision::Open);
        let dead = Some(NodeAnswer::Withdrawn { ended: false });
        assert_eq!(decision(3, &[(0, yes()), (1, dead)]), Decision::Withdrawn);
    }

    #[test]
    fn a_taken_lock_is_free_when_enough_nodes_are() {
        let mut votes = VoteCount::new(3);
        for (node, millis) in [(0, 900), (1, 30)] {
            votes.on_answer(node, Some(&busy(millis)));
        }
        assert_eq!(votes.refusal().remaining, Duration::from_millis(30));
        votes.on_answer(2, Some(&busy(400)));
        assert_eq!(votes.refusal().remaining, Duration::from_millis(400));
    }

    #[test]
    fn a_lease_lasts_as_long_as_a_majority_has_it() {
        let secs = Duration::from_secs;
        let mut left = [secs(9), secs(1), secs(5)];
        assert_eq!(kth_longest(&mut left, 2), secs(5));
        assert_eq!(kth_longest(&mut [secs(3)], 2), Duration::ZERO);
    }
}
