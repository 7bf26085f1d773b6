use leasehold_core::Fence;

use super::{
    node::Vote,
    tally::{NodeSet, VoteCount, bit, count, majority},
};

/// A watermark that is further ahead of the clocks than this is a mistake of some clock.
const A_DAY: u64 = 24 * 60 * 60 * 1_000_000;

/// The most tokens of a block, as on one server.
const BLOCK: u64 = 1024;

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
    use std::time::Duration;

    use super::*;
    use crate::NodeAnswer;

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

    fn count(votes: &[Vote]) -> VoteCount {
        let mut count = VoteCount::new(3);
        for (node, vote) in votes.iter().enumerate() {
            count.on_answer(node, Some(&NodeAnswer::Granted(*vote)));
        }
        count
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
        let accepted = count(&[vote(5, true, 9), vote(6, true, 9)]);
        assert_eq!(fence(&accepted, 3, 100, 1), FenceVerdict::Accepted { by: 0b11 });
        let one = count(&[vote(5, true, 9), vote(120, false, 121)]);
        assert_eq!(fence(&one, 3, 100, 1), FenceVerdict::ToSettle { fence: 121 });
        let too_far = count(&[vote(5, true, 9), vote(6, false, 50)]);
        assert_eq!(fence(&too_far, 3, 100, 1), FenceVerdict::ToSettle { fence: 100 });
        let none = count(&[vote(5, false, 40), vote(6, false, 50)]);
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
