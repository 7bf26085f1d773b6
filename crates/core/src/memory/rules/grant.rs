use std::time::Duration;

use super::{super::row::LeaseRow, Step};
use crate::{
    store::{Granted, Push, StoreError},
    types::{AcquisitionId, FenceToken, RuntimeLabel},
};

/// Who gets a grant.
#[derive(Debug, Clone)]
pub(super) struct Grantee {
    pub(super) id: AcquisitionId,
    pub(super) watermark: Option<FenceToken>,
    pub(super) label: RuntimeLabel,
}

impl Step<'_> {
    /// Grants the free lock, and takes the grantee out of the queue.
    pub(super) fn grant(
        &mut self,
        grantee: Grantee,
        lifetime: Duration,
    ) -> Result<Granted, StoreError> {
        let runtime = grantee.id.runtime();
        let contended = self.queue().has_others(runtime);
        let Some(block) = self.block(grantee.watermark) else {
            return Err(StoreError::exhausted().for_lock(self.name));
        };
        self.count((self.rules.reserves)(block.first, block.last));
        self.queue().remove(|place| place.id.runtime() == runtime);
        self.row.set_lease(Some(LeaseRow {
            id: grantee.id,
            fence: block.first,
            last: block.last,
            holds: 1,
            hold_number: 0,
            label: grantee.label,
            since: self.now,
            kept: false,
            ends: self.now.after(lifetime),
        }));
        Ok(Granted {
            first: block.first,
            last: block.last,
            remaining: lifetime,
            contended,
            regressed: block.regressed,
        })
    }

    /// Grants the free lock to the first live waiter and tells its runtime; how long the grant
    /// lives, or `None` when nobody waits.
    pub(super) fn grant_next(&mut self) -> Result<Option<Duration>, StoreError> {
        let now = self.now;
        let Some(head) = self.queue().head(now) else { return Ok(None) };
        let (id, heartbeat, window) = (head.id, head.heartbeat, head.window);
        let winner = Grantee { id, watermark: head.watermark, label: head.label.clone() };
        let granted = self.grant(winner, window)?;
        let name = self.name.clone();
        self.send(id, Push::Granted { name, id, granted, heartbeat });
        Ok(Some(window))
    }

    /// Ends the lease and grants the lock to the first live waiter, if there is one and a token
    /// is left for it.
    pub(super) fn end_and_grant_next(&mut self) {
        self.row.set_lease(None);
        // Without a token the waiter keeps its place; its next heartbeat hears why.
        let _ = self.grant_next();
    }
}
