use std::time::Duration;

use super::command::{Busy, NodeAnswer, Vote};

/// The most nodes of a quorum.
pub(crate) const MOST_NODES: usize = 7;

/// How many of so many nodes decide.
pub fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Which of the nodes: a bit for each.
pub(crate) type Nodes = u8;

/// The bit of a node.
pub(crate) fn bit(node: usize) -> Nodes {
    1 << node
}

/// How many nodes a set has.
pub(crate) fn count(nodes: Nodes) -> usize {
    nodes.count_ones() as usize
}

/// What the nodes have answered to one try.
#[derive(Debug, Clone)]
pub struct Tally {
    nodes: usize,
    votes: [Option<Vote>; MOST_NODES],
    /// Those that were asked.
    asked: Nodes,
    granted: Nodes,
    busy: Nodes,
    failed: Nodes,
    is_withdrawn: bool,
    /// How many answers were grants, one node counted as often as it answered.
    pub grants: usize,
    /// How long until nodes that are busy may be free.
    waits: Vec<Duration>,
    keeps: bool,
    older: u64,
    waited: Duration,
}

/// What the answers so far mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
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

impl Tally {
    /// No answers of so many nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            votes: [None; MOST_NODES],
            asked: 0,
            granted: 0,
            busy: 0,
            failed: 0,
            is_withdrawn: false,
            grants: 0,
            waits: Vec::new(),
            keeps: false,
            older: 0,
            waited: Duration::ZERO,
        }
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
                self.grants += 1;
            }
            Some(NodeAnswer::Busy(Busy { remaining, keeps, older, waited, .. })) => {
                self.busy |= bit(node);
                self.waits.push(*remaining);
                self.keeps |= keeps;
                self.older = self.older.max(*older);
                self.waited = self.waited.max(*waited);
            }
            Some(NodeAnswer::Withdrawn { .. }) => self.is_withdrawn = true,
            _ => self.failed |= bit(node),
        }
    }

    /// What follows from the answers.
    pub fn verdict(&self) -> Verdict {
        self.verdict_of(count(self.granted))
    }

    /// What follows if so many grants count.
    pub fn verdict_of(&self, granted: usize) -> Verdict {
        let (needed, spare) = (majority(self.nodes), self.nodes - majority(self.nodes));
        if self.is_withdrawn {
            Verdict::Withdrawn
        } else if granted >= needed {
            Verdict::Granted
        } else if count(self.failed) > spare {
            Verdict::TooFew
        } else if count(self.busy) >= needed {
            Verdict::Taken
        } else if count(self.busy | self.failed) > spare && self.majority_answered() {
            Verdict::Split
        } else {
            Verdict::Open
        }
    }

    /// Whether a majority has answered. What fewer say may be an outage.
    pub(crate) fn majority_answered(&self) -> bool {
        count(self.granted | self.busy) >= majority(self.nodes)
    }

    /// How many of the nodes asked may still grant, or have.
    pub(crate) fn hopeful(&self) -> usize {
        count(self.asked & !(self.busy | self.failed))
    }

    /// The nodes that granted.
    pub(crate) fn granted(&self) -> Nodes {
        self.granted
    }

    /// The nodes where others have the lock, or stand before.
    pub(crate) fn busy(&self) -> Nodes {
        self.busy
    }

    /// The nodes that may have granted without saying so.
    pub(crate) fn unheard(&self) -> Nodes {
        self.asked & !(self.granted | self.busy)
    }

    /// The votes of some of the nodes.
    pub fn votes(&self, of: u8) -> impl Iterator<Item = (usize, Vote)> + '_ {
        let votes = self.votes.iter().enumerate();
        votes
            .filter_map(move |(node, vote)| Some((node, (*vote)?)))
            .filter(move |(node, _)| of & bit(*node) != 0)
    }

    /// When a majority may be free: as many of those that are busy have to become free.
    pub(crate) fn wait(&self) -> Duration {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        let free = self.nodes - count(self.busy);
        let missing = majority(self.nodes).saturating_sub(free).max(1);
        waits.get(missing - 1).or_else(|| waits.last()).copied().unwrap_or_default()
    }

    /// Whether a holder may keep the lock idle.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// How many others wait for longer, as far as it is known.
    pub(crate) fn older(&self) -> u64 {
        self.older
    }

    /// For how long nodes have seen the one that asks wait.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }
}

/// How long at least `needed` of the leases are left: the shortest of the longest so many.
pub fn kth_longest(left: &mut [Duration], needed: usize) -> Duration {
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

    /// The verdict when nodes have answered one after the other.
    fn verdict(nodes: usize, answers: &[(usize, Option<NodeAnswer>)]) -> Verdict {
        let mut tally = Tally::new(nodes);
        for (node, answer) in answers {
            tally.on_ask(*node);
            tally.on_answer(*node, answer.as_ref());
        }
        tally.verdict()
    }

    #[test]
    fn a_majority_of_all_nodes_decides() {
        let yes = || Some(vote(7));
        let no = || Some(busy(5));
        assert_eq!(verdict(3, &[(0, yes())]), Verdict::Open);
        assert_eq!(verdict(3, &[(0, yes()), (2, yes())]), Verdict::Granted);
        assert_eq!(verdict(3, &[(0, yes()), (0, yes())]), Verdict::Open);
        assert_eq!(verdict(3, &[(0, yes()), (1, no())]), Verdict::Open);
        assert_eq!(verdict(3, &[(0, no()), (1, no())]), Verdict::Taken);
        assert_eq!(verdict(3, &[(0, yes()), (1, no()), (2, None)]), Verdict::Split);
        assert_eq!(verdict(3, &[(1, None), (2, None)]), Verdict::TooFew);
        assert_eq!(verdict(5, &[(0, yes()), (1, yes()), (2, no())]), Verdict::Open);
        assert_eq!(
            verdict(5, &[(0, yes()), (1, yes()), (2, no()), (3, no()), (4, None)]),
            Verdict::Split
        );
        // What is told of an outage is told by a majority, or not at all.
        assert_eq!(verdict(3, &[(0, no()), (1, None)]), Verdict::Open);
        assert_eq!(verdict(3, &[(0, no()), (1, None), (2, None)]), Verdict::TooFew);
        assert_eq!(verdict(3, &[(0, no()), (1, None), (2, yes())]), Verdict::Split);
        assert_eq!(verdict(5, &[(0, no()), (1, no()), (2, None)]), Verdict::Open);
        let dead = Some(NodeAnswer::Withdrawn { ended: false });
        assert_eq!(verdict(3, &[(0, yes()), (1, dead)]), Verdict::Withdrawn);
    }

    #[test]
    fn a_taken_lock_is_free_when_enough_nodes_are() {
        let mut tally = Tally::new(3);
        for (node, millis) in [(0, 900), (1, 30)] {
            tally.on_answer(node, Some(&busy(millis)));
        }
        assert_eq!(tally.wait(), Duration::from_millis(30));
        tally.on_answer(2, Some(&busy(400)));
        assert_eq!(tally.wait(), Duration::from_millis(400));
    }

    #[test]
    fn a_lease_lasts_as_long_as_a_majority_has_it() {
        let secs = Duration::from_secs;
        let mut left = [secs(9), secs(1), secs(5)];
        assert_eq!(kth_longest(&mut left, 2), secs(5));
        assert_eq!(kth_longest(&mut [secs(3)], 2), Duration::ZERO);
    }
}
