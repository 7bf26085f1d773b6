use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use leasehold_core::{
    Instant, StoreError, StoreErrorKind,
    lease::{HoldUpdate, LeaseState, LossReason},
    metric::{HoldEnd, ReleaseVia},
};

use crate::{
    cohort::AfterLease,
    engine::Cleanup,
    error::{LeaseLost, ReenterError, ReleaseError},
    lease::{Lease, tells_of_lease},
    owner::Held,
    release::{Outcome, rest},
};

/// What releasing a guard came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It was the last hold: the lease has ended. The server confirmed it, unless another task of
    /// this process went on with the lock, or the runtime keeps it idle.
    Ended,
    /// It was the last hold: the lease has ended, and the server confirmed that the lock stays
    /// closed for a while, as [`min_hold`](crate::Acquire::min_hold) asked.
    Kept {
        /// For how long it stays closed from the server's answer on.
        remaining: Duration,
    },
    /// The lease is still held by this many guards.
    StillHeld(NonZeroU32),
}

/// One hold of a lease.
///
/// Releasing the last guard of a lease ends it. Dropping it does too: in memory at once, and on the
/// server as soon as a task of the runtime gets to it, unless another task of this process goes on
/// with the lock. Nothing blocks, nothing panics, in or outside of a tokio runtime.
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
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::LockRuntime;
/// # async fn write(_stamp: leasehold::Stamp) {}
///
/// let locks = LockRuntime::embedded()?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// tokio::select! {
///     biased;
///     end = guard.lost() => println!("stop at once: {end}"),
///     () = write(guard.stamp()) => {} // the storage compares the stamp
/// }
/// guard.release().await?; // or drop it: the runtime then sends the release
/// # Ok(())
/// # }
/// ```
#[must_use = "a guard that is dropped releases the lock at once"]
pub struct Guard {
    // `None` once the hold was taken off.
    held: Option<Arc<Held>>,
    pub(crate) lease: Lease,
}

tells_of_lease!(Guard, lease);

impl Guard {
    /// A guard for a hold that was counted already.
    pub(crate) fn new(held: Arc<Held>) -> Self {
        let lease = Lease(Arc::clone(&held.lease));
        Self { held: Some(held), lease }
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
        Self::enter(held, None).await?.ok_or_else(|| self.ended())
    }

    /// As [`reenter`](Self::reenter), with a wait for the server until then at most; `None` when
    /// the last guard was just released.
    pub(crate) async fn enter(
        held: &Arc<Held>,
        until: Option<Instant>,
    ) -> Result<Option<Self>, ReenterError> {
        let Some(update) = held.count_in()? else { return Ok(None) };
        // From here on the hold is the guard's, which takes it off again if it is dropped.
        let guard = Self::new(Arc::clone(held));
        held.send_holds(update, until).await?;
        Ok(Some(guard))
    }

    /// Gives the hold back, and says how it ended.
    ///
    /// The last release ends the lease; before the end of its
    /// [`min_hold`](crate::Acquire::min_hold) the lock stays closed for the rest. Where
    /// other tasks of this process wait for the lock, the next of them gets it in memory. Otherwise
    /// the release is sent, and this answers within one command timeout. What the server has not
    /// confirmed by then, the runtime goes on telling it until the lease's ttl is over.
    ///
    /// # Errors
    ///
    /// - [`ReleaseError::Lost`] when the lease had been lost before.
    /// - [`ReleaseError::Unconfirmed`] when the server has not confirmed it in time. The lease is
    ///   over in this process, and nothing that was done under it is in doubt.
    ///
    /// # Cancel safety
    ///
    /// The hold is off in memory from the first poll on; dropping the future, polled or not,
    /// leaves the rest to the runtime.
    pub async fn release(mut self) -> Result<Released, ReleaseError> {
        let Some(held) = self.held.take() else { return Ok(Released::Ended) };
        match held.leave() {
            // Boxed: a task that waits for a lock keeps room for what it will do with it.
            Some(update) => Box::pin(leave(held, update)).await,
            None => match end(&held) {
                Ok(released) => released,
                Err(rest) => Box::pin(end_turn(held, rest)).await,
            },
        }
    }

    fn ended(&self) -> ReenterError {
        let reason = match self.lease.state() {
            LeaseState::Lost(reason) => reason,
            LeaseState::Held { .. } | LeaseState::Released => LossReason::Gone,
        };
        ReenterError::Lost(LeaseLost::new(&self.lease.0, reason))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if let Some(update) = held.leave() {
            drop(held.engine.hold(&held.lease, update));
            return;
        }
        let (before, after, _) = held.end(HoldEnd::Dropped);
        match after {
            AfterLease::Settled => held.count_released(ReleaseVia::Drop),
            AfterLease::WasOver if worth_releasing(before) => {
                held.engine.release_lost(&held.lease, ReleaseVia::Drop);
            }
            AfterLease::Dropped | AfterLease::Ends(_) | AfterLease::WasOver => {}
        }
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

async fn leave(held: Arc<Held>, update: HoldUpdate) -> Result<Released, ReleaseError> {
    match held.send_holds(update, None).await {
        Err(ReenterError::Lost(lost)) => Err(ReleaseError::Lost(lost)),
        // What counts is the count in memory.
        _ => Ok(Released::StillHeld(update.count)),
    }
}

/// Releases a lease in memory; an error is the release that is still to be sent.
fn end(held: &Held) -> Result<Result<Released, ReleaseError>, Cleanup> {
    let (before, _, rest) = held.end(HoldEnd::Released);
    Ok(match (before, rest) {
        (LeaseState::Held { .. }, Some(rest)) => return Err(rest),
        (LeaseState::Lost(reason), _) => {
            if worth_releasing(before) {
                held.engine.release_lost(&held.lease, ReleaseVia::Explicit);
            }
            Err(lost(held, reason))
        }
        _ => {
            held.count_released(ReleaseVia::Explicit);
            Ok(Released::Ended)
        }
    })
}

/// Ends a turn on the server that no other task goes on with, within one command timeout.
// ADR 0001
async fn end_turn(held: Arc<Held>, rest: Cleanup) -> Result<Released, ReleaseError> {
    let until = held.engine.clock.now() + held.engine.timing.command_deadline(held.lease.ttl());
    match rest.wait(until, true, false).await {
        Ok(Outcome::Released) => Ok(Released::Ended),
        Ok(Outcome::Kept { remaining }) => Ok(Released::Kept { remaining }),
        Ok(Outcome::Lost(reason)) => Err(lost(&held, reason)),
        Ok(Outcome::Gone | Outcome::Unconfirmed) => Err(unconfirmed(&held, heard_too_late())),
        Err(error) => Err(unconfirmed(&held, error)),
    }
}

fn unconfirmed(held: &Held, error: StoreError) -> ReleaseError {
    let (lock, fence) = (held.lease.name().clone(), held.lease.fence());
    let keeps = rest(held.lease.closed_until(), held.engine.clock.now()).is_some();
    ReleaseError::Unconfirmed { lock, fence, keeps, error: error.for_no_lock() }
}

/// The lease was held to the end; whether its release or the end of its time came first is unknown.
fn heard_too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "the server answered a release after the lease's time: it has the lease no more",
        "nothing needs to be done",
    )
}

/// Whether the server may still have the lease, and no other task ends it there.
fn worth_releasing(before: LeaseState) -> bool {
    match before {
        // A shutdown has handed the release over itself, and a fork has nothing to give back.
        LeaseState::Lost(
            LossReason::Gone
            | LossReason::ForceReleased
            | LossReason::DataLost
            | LossReason::Overwritten
            | LossReason::Shutdown
            | LossReason::Forked,
        )
        | LeaseState::Released => false,
        LeaseState::Held { .. } | LeaseState::Lost(_) => true,
    }
}

fn lost(held: &Held, reason: LossReason) -> ReleaseError {
    ReleaseError::Lost(LeaseLost::new(&held.lease, reason))
}
