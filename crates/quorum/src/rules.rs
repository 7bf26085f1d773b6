use std::time::Duration;

use super::tally::{self, Decision, FenceVerdict, VoteCount};

/// The decisions of a quorum; other ones show the damage.
#[derive(Debug, Clone, Copy)]
pub struct QuorumRules {
    /// What the answers mean.
    pub decision: fn(&VoteCount) -> Decision,
    /// What the fence of a lease is: of votes, number of nodes, ballot, least.
    pub fence: fn(&VoteCount, usize, u64, u64) -> FenceVerdict,
    /// How long a lease has left, of what is left at its nodes in the order of their answers.
    pub left: fn(&mut [Duration], usize) -> Duration,
    /// Whether what was granted without a majority is taken back.
    pub takes_back: bool,
    /// The number of the next attempt.
    pub attempt: fn(u64) -> u64,
    /// Whether a lease may be spread: whether it is held, and whether the node had it before.
    pub may_spread: fn(bool, bool) -> bool,
    /// Which node is asked, of the one whose turn it is and the first.
    pub whom: fn(usize, usize) -> usize,
}

impl Default for QuorumRules {
    fn default() -> Self {
        Self {
            decision: VoteCount::decision,
            fence: tally::fence,
            left: tally::kth_longest,
            takes_back: true,
            attempt: |next| next,
            may_spread: |is_held, had_it| is_held && !had_it,
            whom: |node, _| node,
        }
    }
}
