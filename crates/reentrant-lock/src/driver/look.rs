use std::time::Duration;

use leasehold_core::{Instant, LockName, StoreError, store::Inspection};
use tokio::select;

use crate::error::HolderInfo;

use super::cohorts::Shared;

impl Shared {
    /// Asks who holds a lock, and who waits for it; whatever looks at a lock passes here.
    pub(crate) async fn inspect(
        &self,
        name: &LockName,
        deadline: Instant,
    ) -> Result<Inspection, StoreError> {
        let answer = self.store.inspect(name, deadline).await;
        answer.inspect_err(|error| self.metrics.store().error(error.kind()))
    }

    /// Who holds a lock, if the server tells it within `patience`.
    pub(crate) async fn holder(&self, name: &LockName, patience: Duration) -> Option<HolderInfo> {
        let now = self.clock.now();
        select! {
            biased;
            // With the time of any command: a server that takes longer than the patience is slow, and
            // has not failed.
            seen = self.inspect(name, now + self.timing.command_timeout) => self.seen(seen.ok()?),
            () = self.clock.sleep_until(now + patience) => None,
        }
    }

    /// Whom an inspection shows as the holder.
    pub(crate) fn seen(&self, inspection: Inspection) -> Option<HolderInfo> {
        match inspection {
            Inspection::Held(record) => Some(HolderInfo {
                this_runtime: record.id.runtime() == self.numbers.runtime(),
                label: record.label,
                lease: record.id,
                fence: record.fence,
                held_for: record.held_for,
                remaining: record.remaining,
                kept: record.kept,
            }),
            Inspection::Free { .. } => None,
        }
    }
}
