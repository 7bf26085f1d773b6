use super::{super::row::CounterRow, Step};
use crate::{store::FencePolicy, types::FenceToken};

/// A watermark further ahead of the clock than this comes from a wrong clock.
const WATERMARK_LEAD: u64 = 24 * 60 * 60 * 1_000_000;

/// How many tokens a grant gets at most. A turn usually ends earlier, by its time or its waiters.
const LONGEST: u64 = 1024;

/// The tokens of a grant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) first: FenceToken,
    pub(super) last: FenceToken,
    pub(super) regressed: bool,
}

impl Step<'_> {
    /// The block above all known tokens, which does not reach beyond the clock; `None` when no
    /// token is left.
    pub(super) fn block(&self, watermark: Option<FenceToken>) -> Option<Block> {
        let counted = self.row.counted(self.now);
        let seen = watermark.map_or(0, FenceToken::get);
        let seen = if seen > self.now.micros().saturating_add(WATERMARK_LEAD) { 0 } else { seen };
        let floor = counted.max(seen).saturating_add(1);
        let last = self.raised(floor);
        // Without a counter it is unknown which of the tokens before this one are taken.
        let length = if counted == 0 { 1 } else { LONGEST };
        let first = floor.max(last.saturating_sub(length - 1));
        let (first, last) = (FenceToken::try_from(first).ok()?, FenceToken::try_from(last).ok()?);
        Some(Block { first, last, regressed: seen > counted })
    }

    /// The one token after `last`.
    pub(super) fn token_after(&self, last: u64) -> Option<FenceToken> {
        FenceToken::try_from(self.raised(last.saturating_add(1))).ok()
    }

    /// Sets the counter, and its end anew.
    pub(super) fn count(&mut self, last: FenceToken) {
        let ends = match self.settings.policy {
            FencePolicy::TimeFloor => Some(self.now.after(self.settings.counter_lifetime())),
            FencePolicy::Counter => None,
        };
        self.row.set_counter(Some(CounterRow { last: last.get(), ends }));
    }

    /// A token, raised to the clock where the policy says so.
    fn raised(&self, token: u64) -> u64 {
        match self.settings.policy {
            FencePolicy::TimeFloor => token.max(self.now.micros()),
            FencePolicy::Counter => token,
        }
    }
}
