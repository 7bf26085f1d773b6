use std::sync::{Arc, PoisonError};

use leasehold_core::{Instant, LockName};

use crate::blocked::Report;

use super::cohorts::{Cohorts, Shared};

impl Cohorts {
    /// Asks whether a wait for a lock may be reported now; yields how many waits for other locks
    /// were left out since the last report.
    ///
    /// While the store does not answer there is no report: no holder is to blame.
    pub(crate) fn take_report(&self, name: &LockName, now: Instant) -> Option<u64> {
        let Shared { watches, reports, timing, .. } = &self.shared;
        if !watches.common().outages().unreachable_for(now).is_zero() {
            return None;
        }
        let mut ration = reports.lock().unwrap_or_else(PoisonError::into_inner);
        ration.take(name, now, timing.blocked_after)
    }

    /// Looks who holds the lock, and tells it with the report.
    ///
    /// One look for each report, and [`Ration`](crate::blocked::Ration) bounds those.
    pub(crate) fn report_after_a_look(self: &Arc<Self>, report: Report) {
        let cohorts = Arc::clone(self);
        let look = async move {
            let shared = &cohorts.shared;
            let deadline = shared.clock.now() + shared.timing.command_timeout;
            match shared.inspect(&report.lock, deadline).await {
                Ok(inspection) => report.tell(shared.seen(inspection)),
                Err(error) => {
                    tracing::debug!(lock = %report.lock, %error, "the holder could not be found");
                }
            }
        };
        drop(self.shared.runtime.spawn(look));
    }
}
