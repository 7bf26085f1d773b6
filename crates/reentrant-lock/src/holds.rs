use leasehold_core::{
    Instant,
    lease::{HoldUpdate, HoldsError, LeaseState, LossReason},
    metric::{HoldEnd, ReleaseOutcome, ReleaseVia},
};

use crate::{
    engine::{Cleanup, Engine},
    error::{LeaseLost, ReenterError},
    owner::SharedLease,
    queue::AfterLease,
};

/// How guards count their holds of a lease, and end it.
impl SharedLease {
    /// Counts another hold; `None` when the last one is off.
    pub(crate) fn count_in(&self, engine: &Engine) -> Result<Option<HoldUpdate>, ReenterError> {
        let Some(mut holds) = self.holds.lock_unless(|| engine.is_forked()) else {
            return Ok(None);
        };
        match holds.enter(engine.numbers.change()) {
            Ok(update) => Ok(Some(update)),
            Err(HoldsError::Ended) => Ok(None),
            Err(HoldsError::TooMany) => {
                Err(ReenterError::TooManyHolds { lock: self.lease.name().clone() })
            }
        }
    }

    /// Sends the count of holds, and waits for the answer, until `until` at most.
    ///
    /// An answer that does not come refuses nothing: the lease is believed until its deadline
    /// anyway, and the runtime goes on telling the absolute count.
    pub(crate) async fn send_holds(
        &self,
        engine: &Engine,
        update: HoldUpdate,
        until: Option<Instant>,
    ) -> Result<(), ReenterError> {
        let lease = &self.lease;
        let sent = match engine.hold(lease, update) {
            Some(hold) => {
                let by = engine.clock.now() + engine.timing.command_deadline(lease.ttl());
                // Most wait for longer than a command takes, and need no timer for that.
                let until = until.filter(|until| *until < by);
                hold.wait(until.unwrap_or(by), until.is_none(), true).await.map(|_| ())
            }
            None => Ok(()),
        };
        // The answer may have been awaited for longer than the lease was believed.
        if let LeaseState::Lost(reason) = lease.state() {
            return Err(ReenterError::Lost(LeaseLost::new(lease, reason)));
        }
        match sent {
            Err(error) if error.kind().is_transient() => {
                tracing::debug!(
                    lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), %error,
                    "the count of holds is not confirmed; the lease stands, and the runtime sends it again"
                );
                Ok(())
            }
            sent => sent.map_err(|error| ReenterError::Store(error.for_lock(lease.name()))),
        }
    }

    /// Takes a hold off; `None` means that it was the last one.
    pub(crate) fn leave(&self, engine: &Engine) -> Option<HoldUpdate> {
        self.holds.lock_unless(|| engine.is_forked())?.leave(engine.numbers.change())
    }

    /// As [`Engine::release`], for the owner as well.
    pub(crate) fn end(
        &self,
        engine: &Engine,
        end: HoldEnd,
    ) -> (LeaseState, AfterLease, Option<Cleanup>) {
        let ended = engine.release(&self.lease, end);
        if let Some(owner) = &self.owner
            && ended.0 != LeaseState::Lost(LossReason::Forked)
        {
            owner.forget(&engine.own_holds, &self.lease);
        }
        ended
    }

    /// Counts a release whose turn goes on, or is ended by the runtime.
    pub(crate) fn count_released(&self, via: ReleaseVia) {
        self.lease.metrics().release(ReleaseOutcome::Released, via);
    }
}
