use super::{
    super::{queue::PlaceRow, row::LeaseRow},
    Step,
};
use crate::{
    store::{
        Hold, HoldAnswer, Inspection, LeaseRecord, RenewAnswer, Renewal, WaiterRecord, whole_millis,
    },
    types::{AcquisitionId, FenceToken},
};

impl Step<'_> {
    /// Sets the absolute number of holds and extends; never grants.
    pub(crate) fn hold(&mut self, command: &Hold<'_>) -> HoldAnswer {
        let now = self.now;
        let Some(lease) = self.extended_lease(command.id, command.fence) else {
            return HoldAnswer::Gone;
        };
        if command.update.number <= lease.hold_number {
            let ends = lease.ends;
            return HoldAnswer::Held { remaining: self.left(ends) };
        }
        lease.ends = lease.ends.max(now.after(command.ttl.get()));
        lease.holds = command.update.count.get();
        lease.hold_number = command.update.number;
        let ends = lease.ends;
        self.outlive(self.left(ends));
        HoldAnswer::Held { remaining: self.left(ends) }
    }

    /// Extends a lease; never re-creates one.
    pub(crate) fn renew(&mut self, renewal: &Renewal) -> RenewAnswer {
        let now = self.now;
        let Some(lease) = self.extended_lease(renewal.id, renewal.fence) else {
            return RenewAnswer::Gone;
        };
        lease.ends = lease.ends.max(now.after(renewal.ttl.get()));
        let ends = lease.ends;
        self.outlive(self.left(ends));
        RenewAnswer::Renewed { remaining: self.left(ends) }
    }

    /// The lease that a renewal or a hold means, unless it is only kept closed.
    fn extended_lease(&mut self, id: AcquisitionId, fence: FenceToken) -> Option<&mut LeaseRow> {
        self.lease().filter(|lease| lease.is(id, fence) && !lease.kept)
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
