use leasehold_core::{Fence, store::Granted};

use super::op::Back;

/// The blocks of tokens that a name has seen, in the order of their first appearance.
///
/// How long a block is depends on the clock of its store, so that tokens are compared by the
/// blocks in which they lie.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    blocks: Vec<(Fence, Fence)>,
}

impl Tokens {
    /// The first token of a block that a sequence names; one that nobody gets, if there is none.
    pub(crate) fn fence(&self, back: Back) -> Fence {
        // A plain counter gives this one to both stores or to none.
        let nobodys = || Fence::try_from(1_u64).expect("a token");
        self.block(back).map_or_else(nobodys, |(first, _)| first)
    }

    /// The last token of a block that a sequence names.
    pub(crate) fn watermark(&self, back: Back) -> Option<Fence> {
        self.block(back).map(|(_, last)| last)
    }

    /// The rank of a grant's block.
    pub(crate) fn rank_of(&mut self, granted: &Granted) -> usize {
        assert!(granted.first <= granted.last, "{granted:?}");
        self.rank_or_push((granted.first, granted.last))
    }

    /// The rank of a single token's block.
    pub(crate) fn rank(&mut self, token: Fence) -> usize {
        self.rank_or_push((token, token))
    }

    fn rank_or_push(&mut self, block: (Fence, Fence)) -> usize {
        let holds = |(first, last): &(Fence, Fence)| *first <= block.0 && block.1 <= *last;
        self.blocks.iter().position(holds).unwrap_or_else(|| {
            self.blocks.push(block);
            self.blocks.len() - 1
        })
    }

    fn block(&self, back: Back) -> Option<(Fence, Fence)> {
        self.blocks.len().checked_sub(back? + 1).map(|at| self.blocks[at])
    }
}
