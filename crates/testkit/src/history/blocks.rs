use std::collections::BTreeMap;

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId, seam::Part};

use super::{deed::Deed, event::Event};

/// A grant of the server, as a spy saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) id: AcquisitionId,
    pub(super) first: Fence,
    pub(super) last: Fence,
    pub(super) minted_at: Instant,
    /// Since when the server does not stand by it: data was lost, or an operator ended it.
    pub(super) void_since: Option<Instant>,
    /// How many masters lost something before; of a server that is a master no more, `None`.
    pub(super) reign: Option<u64>,
}

impl Block {
    /// Whether nobody ever stood by the grant.
    pub(super) fn is_disowned(&self) -> bool {
        self.is_void(self.minted_at)
    }

    /// Whether the server had forsaken the grant by `at`.
    pub(super) fn is_void(&self, at: Instant) -> bool {
        self.void_since.is_some_and(|since| since <= at)
    }
}

/// All grants that a spy saw; empty where none looked.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    by_first: BTreeMap<(Fence, usize), Block>,
}

impl Blocks {
    /// Reads the grants, and how each ended, out of the deeds.
    pub(super) fn gather(events: &[Event]) -> Self {
        let (mut blocks, mut reign) = (Self::default(), 0);
        for event in events {
            let Event::Spied { at, deed } = *event else { continue };
            match deed {
                Deed::Minted { id, first, last } => {
                    let (minted_at, void_since, reign) = (at, None, Some(reign));
                    blocks.add(Block { id, first, last, minted_at, void_since, reign });
                }
                Deed::MintedAside { id, first, last, is_void } => {
                    let (minted_at, void_since) = (at, is_void.then_some(at));
                    blocks.add(Block { id, first, last, minted_at, void_since, reign: None });
                }
                Deed::TookOver { is_behind, forsakes, .. } => {
                    reign += u64::from(is_behind);
                    if let Some(last) = forsakes {
                        blocks.disown(at - last);
                        blocks.forsake(at, |_| true);
                    }
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

    fn add(&mut self, block: Block) {
        self.by_first.insert((block.first, self.by_first.len()), block);
    }

    /// Whether nobody looked, or nothing was granted.
    pub(super) fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }

    /// How many grants are of servers that were masters no more.
    pub(super) fn aside(&self) -> usize {
        self.iter().filter(|block| block.reign.is_none()).count()
    }

    /// The grants, in the order of their first tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.by_first.values()
    }

    /// The grant to a runtime that a token belongs to.
    pub(super) fn of(&self, runtime: RuntimeId, fence: Fence) -> Option<&Block> {
        let candidates = self.by_first.range(..=(fence, usize::MAX)).rev().map(|(_, block)| block);
        candidates
            .take(NEIGHBOURS)
            .find(|block| block.id.runtime() == runtime && fence <= block.last)
    }

    /// Nobody ever stood by what was granted since then.
    fn disown(&mut self, since: Instant) {
        for block in self.by_first.values_mut().filter(|block| block.minted_at > since) {
            block.void_since = Some(block.minted_at);
        }
    }

    fn forsake(&mut self, at: Instant, which: impl Fn(&Block) -> bool) {
        for block in self.by_first.values_mut().filter(|block| which(block)) {
            block.void_since.get_or_insert(at);
        }
    }
}

/// How many blocks are searched; those of a right server do not overlap.
const NEIGHBOURS: usize = 64;
