use std::time::Duration;

use leasehold_core::Fence;

use super::node::{Busy, NodeAnswer, Vote};

/// The most nodes of a quorum.
pub(crate) const MOST_NODES: usize = 7;

/// A watermark that is further ahead of the clocks than this is a mistake of some clock.
const A_DAY: u64 = 24 * 60 * 60 * 1_000_000;

/// The most tokens of a block, as on one server.
const BLOCK: u64 = 1024;

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
            Some(NodeAnswer::Busy(Busy { remaining, keeps, older, .. })) => {
                self.busy |= bit(node);
                self.waits.push(*remaining);
                let known = &mut self.refusal;
                known.keeps |= keeps;
                known.older = known.older.max(*older);
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

/// The greatest token that the runtime has seen, 0 for none, or for one that cannot be right; and the fence that
/// an asker proposes: above all that it has seen, and by the clock of a node.
pub(super) fn propose(watermark: Option<Fence>, micros: u64) -> (u64, u64) {
    let seen = watermark.map_or(0, Fence::get);
    let seen = if seen > micros.saturating_add(A_DAY) { 0 } else { seen };
    (seen, micros.max(seen + 1))
}

/// What the fence of a lease is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceVerdict {
    /// A majority has accepted the ballot.
    Accepted {
        /// The nodes that have.
        by: u8,
    },
    /// It has to be written to a majority of the nodes that granted.
    ToSettle {
        /// The fence.
        fence: u64,
    },
}

/// Chooses the fence of a lease that a majority has granted.
///
/// Every node that granted has accepted nothing above what it tells. So a fence above all of that is
/// above each fence that a majority ever had.
// ADR 0036
pub(super) fn fence(votes: &VoteCount, nodes: usize, ballot: u64, least: u64) -> FenceVerdict {
    let of_granted = |test: fn(&Vote) -> bool| -> NodeSet {
        let alike = votes.votes(votes.granted()).filter(|(_, vote)| test(vote));
        alike.fold(0, |all, (node, _)| all | bit(node))
    };
    let by = of_granted(|vote| vote.accepted);
    if count(by) >= majority(nodes) {
        return FenceVerdict::Accepted { by };
    }
    let told = votes.votes(votes.granted());
    let told = told.map(|(_, vote)| if vote.accepted { ballot } else { vote.least });
    FenceVerdict::ToSettle { fence: told.max().unwrap_or(0).max(least) }
}

/// The tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    /// The first token.
    pub(super) first: u64,
    /// The last one, which is the fence on the nodes.
    pub(super) last: u64,
    /// Whether the nodes' counters were behind what the asker has seen.
    pub(super) regressed: bool,
}

/// The block of a lease with a fence, from the votes of those who have it.
///
/// Where a node knew no token before, it is unknown which ones are taken.
pub(super) fn block(votes: impl Iterator<Item = Vote>, fence: u64, seen: u64) -> Block {
    let (mut before, mut is_unknown) = (0, false);
    for vote in votes {
        before = before.max(vote.before);
        is_unknown |= vote.before == 0;
    }
    let regressed = seen > before && !is_unknown;
    let first = if is_unknown {
        fence
    } else {
        (before.max(seen) + 1).max((fence + 1).saturating_sub(BLOCK))
    };
    Block { first: first.min(fence), last: fence, regressed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(before: u64, accepted: bool, least: u64) -> Vote {
        Vote {
            before,
            accepted,
            least,
            remaining: Duration::from_secs(1),
            contended: false,
            now: 0,
        }
    }

    fn busy(millis: u64) -> NodeAnswer {
        let remaining = Duration::from_millis(millis);
        NodeAnswer::Busy(Busy { remaining, keeps: false, older: 0, holder: None, now: 0 })
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

    fn counted(votes: &[Vote]) -> VoteCount {
        let mut count = VoteCount::new(3);
        for (node, vote) in votes.iter().enumerate() {
            count.on_answer(node, Some(&NodeAnswer::Granted(*vote)));
        }
        count
    }

    #[test]
    fn a_majority_of_all_nodes_decides() {
        let yes = || Some(NodeAnswer::Granted(vote(7, true, 0)));
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

    #[test]
    fn a_ballot_is_above_what_was_seen_unless_that_cannot_be() {
        let token = |number: u64| Fence::try_from(number).ok();
        assert_eq!(propose(None, 500), (0, 500));
        assert_eq!(propose(token(700), 500), (700, 701));
        assert_eq!(propose(token(501 + A_DAY), 500), (0, 500));
    }

    #[test]
    fn a_majority_of_acceptances_is_the_fence() {
        let accepted = counted(&[vote(5, true, 9), vote(6, true, 9)]);
        assert_eq!(fence(&accepted, 3, 100, 1), FenceVerdict::Accepted { by: 0b11 });
        let one = counted(&[vote(5, true, 9), vote(120, false, 121)]);
        assert_eq!(fence(&one, 3, 100, 1), FenceVerdict::ToSettle { fence: 121 });
        let too_far = counted(&[vote(5, true, 9), vote(6, false, 50)]);
        assert_eq!(fence(&too_far, 3, 100, 1), FenceVerdict::ToSettle { fence: 100 });
        let none = counted(&[vote(5, false, 40), vote(6, false, 50)]);
        assert_eq!(fence(&none, 3, 900, 1), FenceVerdict::ToSettle { fence: 50 });
        assert_eq!(fence(&none, 3, 900, 77), FenceVerdict::ToSettle { fence: 77 });
    }

    #[test]
    fn a_block_begins_above_what_any_of_its_nodes_knew() {
        let of = |befores: &[u64], last, seen| {
            let block = block(befores.iter().map(|before| vote(*before, true, 0)), last, seen);
            (block.first, block.last, block.regressed)
        };
        assert_eq!(of(&[5_000, 5_900], 6_000, 0), (5_901, 6_000, false));
        assert_eq!(of(&[5, 6], 6_000, 0), (6_000 - 1_023, 6_000, false));
        assert_eq!(of(&[0, 5_900], 6_000, 0), (6_000, 6_000, false));
        assert_eq!(of(&[5_000, 5_900], 6_000, 5_950), (5_951, 6_000, true));
    }
}
