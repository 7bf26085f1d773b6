use std::time::Duration;

use super::{
    super::{
        row::{LeaseRow, Row},
        time::ServerTime,
    },
    Step,
};
use crate::{
    seam::Named,
    store::{Hold, HoldAnswer, RenewAnswer, Renewal},
    types::RuntimeLabel,
};

impl Step<'_> {
    /// Sets the absolute number of holds and extends; never grants.
    pub(crate) fn hold(&mut self, command: &Hold<'_>) -> HoldAnswer {
        let (now, rules) = (self.now, self.rules);
        let named = Named { id: command.id, fence: command.fence };
        let Some(lease) = self.extended_lease(named) else { return HoldAnswer::Gone };
        if command.update.number > lease.hold_number {
            lease.ends = lease.ends.max(now.after(command.ttl.get()));
            lease.holds = (rules.holds)(lease.holds, command.update.count);
            lease.hold_number = command.update.number;
        }
        let ends = lease.ends;
        HoldAnswer::Held { remaining: self.left(ends) }
    }

    /// Extends a lease; never re-creates one.
    pub(crate) fn renew(&mut self, renewal: &Renewal) -> RenewAnswer {
        let now = self.now;
        let named = Named { id: renewal.id, fence: renewal.fence };
        if (self.rules.renewal_recreates)(named) {
            recreate(self.row, self.now, named);
        }
        let Some(lease) = self.extended_lease(named) else { return RenewAnswer::Gone };
        lease.ends = lease.ends.max(now.after(renewal.ttl.get()));
        let ends = lease.ends;
        RenewAnswer::Renewed { remaining: self.left(ends) }
    }

    /// The lease that a renewal or a hold means, unless it is only kept closed.
    fn extended_lease(&mut self, named: Named) -> Option<&mut LeaseRow> {
        let extends = self.rules.extends;
        self.lease().filter(|lease| extends(lease.named(), named) && !lease.kept)
    }
}

/// What no store does but a mutant: a lease out of nothing.
fn recreate(row: &mut Row, now: ServerTime, named: Named) {
    if row.lease(now).is_some() {
        return;
    }
    row.set_lease(Some(LeaseRow {
        id: named.id,
        fence: named.fence,
        last: named.fence,
        holds: 1,
        hold_number: 0,
        label: RuntimeLabel::new("re-created"),
        since: now,
        kept: false,
        ends: now.after(Duration::from_micros(1)),
    }));
}
