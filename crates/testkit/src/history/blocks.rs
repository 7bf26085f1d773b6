use std::collections::BTreeMap;

use leasehold_core::{AcquisitionId, FenceToken, Instant, RuntimeId, seam::Part};

use super::{deed::Deed, event::Event};

/// A grant of the server, as a spy saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) id: AcquisitionId,
    pub(super) first: FenceToken,
    pub(super) last: FenceToken,
    pub(super) minted_at: Instant,
    /// Since when the server does not stand by it: data was lost, or an operator ended it.
    pub(super) void_since: Option<Instant>,
}

impl Block {
    /// Whether the server had forsaken the grant by `at`.
    pub(super) fn is_void(&self, at: Instant) -> bool {
        self.void_since.is_some_and(|since| since <= at)
    }
}

/// All grants that a spy saw; empty where none looked.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    by_first: BTreeMap<(FenceToken, usize), Block>,
}

impl Blocks {
    /// Reads the grants, and what became of them, out of the deeds.
    pub(super) fn gather(events: &[Event]) -> Self {
        let mut blocks = Self::default();
        for event in events {
            let Event::Spied { at, deed } = *event else { continue };
            match deed {
                Deed::Minted { id, first, last } => {
                    let block = Block { id, first, last, minted_at: at, void_since: None };
                    blocks.by_first.insert((first, blocks.by_first.len()), block);
                }
                Deed::Forced { first } => blocks.forsake(at, |block| block.first == first),
                Deed::Forgot | Deed::PartLost { part: Part::Lock } => {
                    blocks.forsake(at, |_| true);
                }
                _ => {}
            }
        }
        blocks
    }

    /// Whether nobody looked, or nothing was granted.
    pub(super) fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }

    /// The grants, in the order of their first tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.by_first.values()
    }

    /// The grant to a runtime that a token belongs to.
    pub(super) fn of(&self, runtime: RuntimeId, fence: FenceToken) -> Option<&Block> {
        let candidates = self.by_first.range(..=(fence, usize::MAX)).rev().map(|(_, block)| block);
        candidates
            .take(NEIGHBOURS)
            .find(|block| block.id.runtime() == runtime && fence <= block.last)
    }

    fn forsake(&mut self, at: Instant, which: impl Fn(&Block) -> bool) {
        for block in self.by_first.values_mut().filter(|block| which(block)) {
            block.void_since.get_or_insert(at);
        }
    }
}

/// How many blocks are searched; those of a right server do not overlap.
const NEIGHBOURS: usize = 64;
