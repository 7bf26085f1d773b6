use std::time::Duration;

use super::{super::row::PlaceRow, Step};
use crate::{
    lease::HoldUpdate,
    store::{
        Hold, HoldAnswer, Inspection, LeaseRecord, RenewAnswer, Renewal, WaiterRecord, whole_millis,
    },
    types::{AcquisitionId, FenceToken, Ttl},
};

impl Step<'_> {
    /// Sets the absolute number of holds and extends; never grants.
    pub(crate) fn hold(&mut self, command: &Hold<'_>) -> HoldAnswer {
        let Hold { id, fence, ttl, update, .. } = *command;
        let extended = self.extend(id, fence, ttl, Some(update));
        extended.map_or(HoldAnswer::Gone, |remaining| HoldAnswer::Held { remaining })
    }

    /// Extends a lease; never re-creates one.
    pub(crate) fn renew(&mut self, renewal: &Renewal) -> RenewAnswer {
        let Renewal { id, fence, ttl, .. } = *renewal;
        let extended = self.extend(id, fence, ttl, None);
        extended.map_or(RenewAnswer::Gone, |remaining| RenewAnswer::Renewed { remaining })
    }

    /// Extends a lease that is not only kept closed, unless a later change of its holds was seen;
    /// returns how long it has left.
    fn extend(
        &mut self,
        id: AcquisitionId,
        fence: FenceToken,
        ttl: Ttl,
        update: Option<HoldUpdate>,
    ) -> Option<Duration> {
        let now = self.now;
        let lease = self.lease().filter(|lease| lease.is(id, fence) && !lease.kept)?;
        if let Some(HoldUpdate { count, number }) = update {
            if number <= lease.hold_number {
                return self.lease_left();
            }
            (lease.holds, lease.hold_number) = (count.get(), number);
        }
        lease.ends = lease.ends.max(now.after(ttl.get()));
        let left = self.lease_left()?;
        self.outlive(left);
        Some(left)
    }
}

/// How many waiters a look shows at most.
const SHOWN: usize = 128;

impl Step<'_> {
    /// Returns who holds the lock, and who waits for it.
    pub(crate) fn inspect(&mut self) -> Inspection {
        let now = self.now;
        let last_fence = FenceToken::try_from(self.row.counted(now)).ok();
        let waiters = self.waiters();
        let Some(lease) = self.row.lease(now) else { return Inspection::Free { last_fence } };
        Inspection::Held(LeaseRecord {
            id: lease.id,
            fence: lease.fence,
            holds: lease.holds,
            remaining: whole_millis(now.until(lease.ends)),
            label: lease.label.to_string(),
            held_for: lease.since.until(now),
            kept: lease.kept,
            idle: false,
            keeps: lease.keeps(),
            waiters,
        })
    }

    /// The first live waiters, in order.
    fn waiters(&mut self) -> Vec<WaiterRecord> {
        let now = self.now;
        let record = |place: &PlaceRow| WaiterRecord {
            id: place.id,
            label: place.label.to_string(),
            silent_for: place.heard.until(now),
        };
        self.queue().live(now).take(SHOWN).map(record).collect()
    }
}
