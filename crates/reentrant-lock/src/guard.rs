use std::{fmt, sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, LockName, Stamp, StoreErrorKind,
    lease::{HoldUpdate, LeaseState, LossReason},
    metric::{HoldEnd, ReleaseOutcome, ReleaseVia},
    store::{Release, ReleaseAnswer},
};
use leasehold_watchdog::Lost;
use tokio_util::sync::CancellationToken;

use crate::{
    engine::Cleanup,
    error::{ReenterError, ReleaseError},
    held::Held,
    lease::Lease,
    released::Released,
};

/// One hold of a lease.
///
/// Releasing the last guard of a lease ends it. Dropping it does too: in memory at once, on the
/// server as soon as the runtime's reaper gets to it; nothing blocks, nothing panics, in or
/// outside of a tokio runtime.
///
/// A guard cannot be used after its release, which consumes it:
///
/// ```compile_fail,E0382
/// # async fn example(guard: leasehold_reentrant_lock::Guard) {
/// let _ = guard.release().await;
/// let fence = guard.fence();
/// # }
/// ```
///
/// What outlives it is a view of the lease, which says that it was released:
///
/// ```
/// # async fn example(guard: leasehold_reentrant_lock::Guard) {
/// let lease = guard.lease();
/// let _ = guard.release().await;
/// assert!(!lease.is_held());
/// # }
/// ```
#[must_use = "a guard that is dropped releases the lock at once"]
pub struct Guard {
    // `None` once the hold was taken off.
    held: Option<Arc<Held>>,
    lease: Lease,
}

impl Guard {
    /// A guard for a hold that was counted already.
    pub(crate) fn new(held: Arc<Held>) -> Self {
        let lease = Lease(Arc::clone(&held.lease));
        Self { held: Some(held), lease }
    }

    /// The lock.
    pub fn name(&self) -> &LockName {
        self.lease.name()
    }

    /// The id of the lease, never used for another.
    pub fn id(&self) -> AcquisitionId {
        self.lease.id()
    }

    /// The fence token: hand it to the storage with every write.
    pub fn fence(&self) -> FenceToken {
        self.lease.fence()
    }

    /// What a storage's gate asks for: the fence, and the id of the lease.
    pub fn stamp(&self) -> Stamp {
        self.lease.stamp()
    }

    /// Whether the lease is held; looks at the clock first.
    pub fn is_held(&self) -> bool {
        self.lease.is_held()
    }

    /// For how long the lease may be believed without another renewal; zero when it is over.
    pub fn remaining(&self) -> Duration {
        self.lease.remaining()
    }

    /// A future, borrowing nothing, that resolves when the lease is over, and how it ended.
    pub fn lost(&self) -> Lost {
        self.lease.lost()
    }

    /// A token that is cancelled when the lease is over.
    pub fn cancellation(&self) -> CancellationToken {
        self.lease.cancellation()
    }

    /// A view of the lease for others to watch.
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }

    /// Takes another hold of the same lease: the same fence, and one more guard to release.
    ///
    /// Counted in memory first. While the server is out of reach the lease stands until its
    /// deadline, and so does the re-entry.
    ///
    /// # Errors
    ///
    /// - [`ReenterError::Lost`] when the lease is gone; a re-entry never grants a new one.
    /// - [`ReenterError::TooManyHolds`] beyond two billion holds.
    /// - [`ReenterError::Store`] when the server refuses for good.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the hold off again.
    pub async fn reenter(&self) -> Result<Self, ReenterError> {
        // Only a release takes the hold off, and that consumes the guard.
        let Some(held) = &self.held else { return Err(self.ended()) };
        Self::enter(held).await?.ok_or_else(|| self.ended())
    }

    /// Enters a lease that has guards; `None` when the last of them was just released.
    pub(crate) async fn enter(held: &Arc<Held>) -> Result<Option<Self>, ReenterError> {
        let Some(update) = held.count_in()? else { return Ok(None) };
        // From here on the hold is the guard's, which takes it off again if it is dropped.
        let guard = Self::new(Arc::clone(held));
        held.tell_entry(update).await?;
        Ok(Some(guard))
    }

    /// Gives the hold back, and says what came of it.
    ///
    /// The last release is retried until the server confirms it or the lease's ttl is over.
    ///
    /// # Errors
    ///
    /// - [`ReleaseError::Lost`] when the lease had been lost before.
    /// - [`ReleaseError::Unconfirmed`] when the server could not be told.
    ///
    /// # Cancel safety
    ///
    /// The hold is off in memory from the first poll on; dropping the future, polled or not,
    /// leaves the rest to the reaper.
    pub async fn release(mut self) -> Result<Released, ReleaseError> {
        let Some(held) = self.held.take() else { return Ok(Released::Ended) };
        match held.leave() {
            Some(update) => leave(&held, update).await,
            None => end(&held).await,
        }
    }

    fn ended(&self) -> ReenterError {
        let (lock, fence) = (self.name().clone(), self.fence());
        ReenterError::Lost { lock, fence, reason: LossReason::Gone }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if let Some(update) = held.leave() {
            drop(held.hold_job(update));
            return;
        }
        // Announced before the lease leaves the watchdog: a shutdown sees the one or the other.
        let (late_copies, rest) = (held.withdraw_job(), held.release_job(ReleaseVia::Drop));
        if worth_releasing(held.end(HoldEnd::Dropped)) {
            drop(rest);
        } else {
            rest.disarm();
        }
        drop(late_copies);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("name", self.name())
            .field("id", &self.id())
            .field("fence", &self.fence())
            .field("state", &self.lease.state())
            .finish_non_exhaustive()
    }
}

/// Tells the server that a lease has fewer holds.
async fn leave(held: &Arc<Held>, update: HoldUpdate) -> Result<Released, ReleaseError> {
    let rest = held.hold_job(update);
    let told = held.tell(update).await;
    // Otherwise the reaper tells the server later: the count in memory is what matters.
    if matches!(told, Ok(()) | Err(ReenterError::Lost { .. })) {
        rest.into_iter().for_each(Cleanup::disarm);
    }
    match told {
        Err(ReenterError::Lost { lock, fence, reason }) => {
            Err(ReleaseError::Lost { lock, fence, reason })
        }
        _ => Ok(Released::StillHeld(update.count)),
    }
}

/// Ends a lease in memory, then on the server.
async fn end(held: &Arc<Held>) -> Result<Released, ReleaseError> {
    // Follows the release, however that ends. Both are announced before the lease leaves the
    // watchdog: a shutdown sees the one or the other.
    let _late_copies = held.withdraw_job();
    let rest = held.release_job(ReleaseVia::Explicit);
    let before = held.end(HoldEnd::Released);
    let outcome = match before {
        LeaseState::Held { until } => confirm(held, until).await,
        LeaseState::Lost(reason) => {
            if !worth_releasing(before) {
                rest.disarm();
            }
            return Err(lost(held, reason));
        }
        LeaseState::Released => Ok(Released::Ended),
    };
    let label = match &outcome {
        Ok(_) => ReleaseOutcome::Released,
        Err(ReleaseError::Lost { .. }) => ReleaseOutcome::Gone,
        Err(ReleaseError::Unconfirmed { .. }) => ReleaseOutcome::Unconfirmed,
    };
    rest.settle(label);
    held.lease.metrics().release(label, ReleaseVia::Explicit);
    outcome
}

/// Tells the server until it answers or has forgotten the lease by itself.
///
/// `until` is how long the holder could believe in the lease when it gave it back.
async fn confirm(held: &Arc<Held>, until: Instant) -> Result<Released, ReleaseError> {
    let Held { engine, lease, .. } = &**held;
    let (expires, mut doubtful) = (held.expires(), false);
    let mut pauses = engine.backoff();
    loop {
        let now = engine.clock.now();
        let deadline = expires.min(now + engine.timing.command_deadline(lease.ttl()));
        let (name, id, fence) = (lease.name(), lease.id(), lease.fence());
        let command = Release { name, id, fence, keep: None, deadline };
        let error = match engine.counted(engine.store.release(command).await) {
            Ok(ReleaseAnswer::Released | ReleaseAnswer::Kept { .. }) => return Ok(Released::Ended),
            // A copy that was not answered did it: nobody else could have before the deadline.
            Ok(ReleaseAnswer::Gone) if doubtful && engine.clock.now() < until => {
                return Ok(Released::Ended);
            }
            Ok(ReleaseAnswer::Gone) => {
                lease.metrics().lost(LossReason::Gone);
                return Err(lost(held, LossReason::Gone));
            }
            Err(error) => error,
        };
        doubtful |= error.kind() == StoreErrorKind::Indeterminate;
        let pause = engine.clock.now() + pauses.next_pause();
        if !error.kind().is_transient() || pause >= expires {
            let (lock, fence) = (lease.name().clone(), lease.fence());
            return Err(ReleaseError::Unconfirmed { lock, fence, source: error });
        }
        engine.clock.sleep_until(pause).await;
    }
}

/// Whether the server may still have the lease, and nobody else ends it there.
fn worth_releasing(before: LeaseState) -> bool {
    match before {
        // A shutdown has handed the release over itself.
        LeaseState::Lost(LossReason::Gone | LossReason::Shutdown) | LeaseState::Released => false,
        LeaseState::Held { .. } | LeaseState::Lost(_) => true,
    }
}

fn lost(held: &Held, reason: LossReason) -> ReleaseError {
    let (lock, fence) = (held.lease.name().clone(), held.lease.fence());
    ReleaseError::Lost { lock, fence, reason }
}
