use super::{super::row::LeaseRow, Step};
use crate::{
    store::{Hold, HoldAnswer, RenewAnswer, Renewal},
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
