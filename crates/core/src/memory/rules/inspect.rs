use super::{super::queue::PlaceRow, Step};
use crate::{
    store::{Inspection, LeaseRecord, WaiterRecord, whole_millis},
    types::FenceToken,
};

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
