use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Instant, LockName, StoreError,
    store::{Inspect, Inspection, only},
};
use tokio::select;

use crate::{
    blocked::Report,
    cohort::{Cohort, TurnId},
    error::HolderInfo,
};

use super::core::Engine;

impl Engine {
    /// Tells who holds a lock, and who waits for it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn inspect(&self, name: &LockName) -> Result<Inspection, StoreError> {
        let now = self.clock.now();
        let mut seen = self.inspect_until(name, now, now + self.timing.command_timeout).await?;
        self.note_idle(name, &mut seen);
        Ok(seen)
    }

    /// As [`inspect`](Self::inspect), of many locks at once.
    pub(crate) async fn inspect_all(
        &self,
        names: Vec<LockName>,
    ) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
        self.check_process()?;
        let now = self.clock.now();
        let deadline = now + self.timing.command_timeout;
        let looks = Inspect { names: names.clone() };
        let mut seen = self.counted(self.store.ask(now, looks, deadline).await)?;
        for (name, seen) in names.iter().zip(&mut seen) {
            if let Ok(seen) = seen {
                self.note_idle(name, seen);
            }
        }
        Ok(seen)
    }

    /// Only the runtime that keeps a lock knows whether it is idle.
    fn note_idle(&self, name: &LockName, seen: &mut Inspection) {
        if let Inspection::Held(record) = seen {
            let idle = self.look(name, Cohort::idle_turn).flatten();
            record.idle = idle == Some(TurnId { id: record.id, first: record.fence });
        }
    }

    pub(crate) async fn inspect_until(
        &self,
        name: &LockName,
        now: Instant,
        deadline: Instant,
    ) -> Result<Inspection, StoreError> {
        self.check_process()?;
        let look = Inspect { names: vec![name.clone()] };
        let seen = self.store.ask(now, look, deadline).await;
        self.counted(seen.and_then(only))
    }

    /// Who holds a lock; `None` when the server does not answer within `patience`.
    pub(crate) async fn holder_on_server(
        &self,
        name: &LockName,
        patience: Duration,
    ) -> Option<Result<Option<HolderInfo>, StoreError>> {
        let now = self.clock.now();
        select! {
            biased;
            // A server that takes longer than the patience is slow, and has not failed.
            seen = self.inspect_until(name, now, now + self.timing.command_timeout) => {
                Some(seen.map(|inspection| self.seen(inspection)))
            }
            () = self.clock.sleep_until(now + patience) => None,
        }
    }

    fn seen(&self, inspection: Inspection) -> Option<HolderInfo> {
        match inspection {
            Inspection::Held(record) => Some(HolderInfo {
                this_runtime: record.id.runtime() == self.runtime_id(),
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

    /// Whether a wait for a lock may be reported now; yields how many others were left out. While
    /// the store does not answer there is no report: no holder is to blame.
    pub(crate) fn take_report(&self, name: &LockName, now: Instant) -> Option<u64> {
        if !self.outages().state().unreachable_for(now).is_zero() {
            return None;
        }
        self.reports.lock().take(name, now, self.timing.blocked_after)
    }

    /// Finds out who holds the lock, and logs the report; [`Ration`](crate::blocked::Ration) bounds
    /// how often.
    pub(crate) fn report_after_a_look(self: &Arc<Self>, report: Report) {
        let engine = Arc::clone(self);
        let look = async move {
            match engine.inspect(&report.lock).await {
                Ok(inspection) => report.log(engine.seen(inspection)),
                Err(error) => {
                    tracing::debug!(lock = %report.lock, %error, "the holder could not be found");
                }
            }
        };
        self.spawn(look);
    }
}
