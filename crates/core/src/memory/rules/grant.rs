use std::time::Duration;

use super::{
    super::row::{CounterRow, LeaseRow, PlaceRow},
    Step,
};
use crate::{
    store::{FencePolicy, Granted, Push, StoreError},
    types::FenceToken,
};

/// A watermark further ahead of the clock than this comes from a wrong clock.
const WATERMARK_LEAD: u64 = 24 * 60 * 60 * 1_000_000;

/// How many tokens a grant gets at most. A turn usually ends earlier, by its time or its waiters.
const LONGEST: u64 = 1024;

/// The tokens of a grant.
#[derive(Debug, Clone, Copy)]
struct Block {
    first: FenceToken,
    last: FenceToken,
    regressed: bool,
}

impl Step<'_> {
    /// Grants the free lock, and takes the grantee out of the queue.
    pub(super) fn grant(
        &mut self,
        grantee: PlaceRow,
        lifetime: Duration,
    ) -> Result<Granted, StoreError> {
        let runtime = grantee.id.runtime();
        let contended = self.queue().has_others(runtime);
        let Some(block) = self.block(grantee.watermark) else {
            return Err(StoreError::exhausted().for_lock(self.name));
        };
        self.count(block.last, lifetime);
        self.queue().remove(|place| place.id.runtime() == runtime);
        self.row.lease = Some(LeaseRow {
            id: grantee.id,
            fence: block.first,
            last: block.last,
            holds: 1,
            hold_number: 0,
            label: grantee.label,
            since: self.now,
            kept: false,
            keeps: grantee.keeps,
            ends: self.now.after(lifetime),
        });
        let Block { first, last, regressed } = block;
        Ok(Granted { first, last, remaining: lifetime, contended, regressed })
    }

    /// Grants the free lock to the first live waiter and tells its runtime; returns how long the grant
    /// lives and whether it keeps, or `None` when nobody waits.
    pub(super) fn grant_next(&mut self) -> Result<Option<(Duration, bool)>, StoreError> {
        let now = self.now;
        let Some(head) = self.queue().head(now).cloned() else { return Ok(None) };
        let PlaceRow { id, heartbeat, window, keeps, .. } = head;
        let granted = self.grant(head, window)?;
        let name = self.name.clone();
        self.send(id, Push::Granted { name, id, granted, heartbeat });
        Ok(Some((window, keeps)))
    }

    /// Ends the lease, and grants the lock to the first live waiter if a token is left for it.
    pub(super) fn end_and_grant_next(&mut self) {
        self.row.lease = None;
        // Without a token the waiter keeps its place; its next heartbeat hears why.
        let _ = self.grant_next();
    }

    /// The block above all known tokens, which does not reach beyond the clock; `None` when no
    /// token is left.
    fn block(&self, watermark: Option<FenceToken>) -> Option<Block> {
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

    pub(super) fn token_after(&self, last: u64) -> Option<FenceToken> {
        FenceToken::try_from(self.raised(last.saturating_add(1))).ok()
    }

    /// Sets the counter, which outlives a lease of this length.
    pub(super) fn count(&mut self, last: FenceToken, life: Duration) {
        let ends = self.row.counter(self.now).and_then(|counter| counter.ends);
        let ends = ends.filter(|_| self.settings.policy == FencePolicy::TimeFloor);
        self.row.counter = Some(CounterRow { last: last.get(), ends });
        self.outlive(life);
    }

    /// Lets the counter live for the retention and longer than a lease, and an eighth more, as in Redis:
    /// most grants need not refresh it so.
    pub(super) fn outlive(&mut self, life: Duration) {
        if self.settings.policy == FencePolicy::Counter {
            return;
        }
        let (now, least) = (self.now, self.settings.counter_lifetime().max(life));
        if let Some(mut counter) = self.row.counter(now) {
            if counter.ends.is_none_or(|ends| ends < now.after(least)) {
                counter.ends = Some(now.after(least + least / 8));
            }
            self.row.counter = Some(counter);
        }
    }

    /// A token, raised to the clock where the policy says so.
    fn raised(&self, token: u64) -> u64 {
        match self.settings.policy {
            FencePolicy::TimeFloor => token.max(self.now.micros()),
            FencePolicy::Counter => token,
        }
    }
}
