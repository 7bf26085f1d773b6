use std::{fmt, num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use leasehold_core::{
    Instant, Stamp, StoreError, StoreErrorKind,
    lease::{HoldUpdate, HoldsError, LeaseState, LossReason},
    metric::HoldEnd,
};

use crate::{
    engine::{DeliveryEnd, Engine},
    error::{LeaseLost, ReenterError, ReleaseError},
    lease::Lease,
    owner::{Owner, SharedLease},
    timing::closed_for,
};

/// What releasing a guard came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    /// It was the last hold: the lease has ended. The server confirmed it, unless other tasks of this
    /// process wait for the lock or went on with it, or the runtime keeps it idle: then the runtime
    /// sends the release.
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

/// One hold of a lease; it dereferences to the [`Lease`], which tells of its name, fence and loss.
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
    engine: Arc<Engine>,
    // `None` once the hold was taken off.
    held: Option<Arc<SharedLease>>,
    pub(crate) lease: Lease,
}

impl Guard {
    /// A guard for a hold that was counted already.
    pub(crate) fn new(engine: Arc<Engine>, held: Arc<SharedLease>) -> Self {
        let lease = Lease(Arc::clone(&held.lease));
        Self { engine, held: Some(held), lease }
    }

    /// Returns a view of the lease for others to watch.
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
        Self::enter(&self.engine, held, None).await?.ok_or_else(|| self.ended())
    }

    /// As [`reenter`](Self::reenter), with a wait for the server until `until` at most; `None` when
    /// the last guard was just released.
    pub(crate) async fn enter(
        engine: &Arc<Engine>,
        held: &Arc<SharedLease>,
        until: Option<Instant>,
    ) -> Result<Option<Self>, ReenterError> {
        let entered = held
            .holds
            .lock_unless(|| engine.is_forked())
            .map(|mut holds| holds.enter(engine.numbers.next_change()));
        let update = match entered {
            Some(Ok(update)) => update,
            None | Some(Err(HoldsError::Ended)) => return Ok(None),
            Some(Err(HoldsError::TooMany)) => {
                return Err(ReenterError::TooManyHolds { lock: held.lease.name().clone() });
            }
        };
        // From here on the hold is the guard's, which takes it off again if it is dropped.
        let guard = Self::new(Arc::clone(engine), Arc::clone(held));
        held.send_holds(engine, update, until).await?;
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
    #[doc(alias = "unlock")]
    pub async fn release(mut self) -> Result<Released, ReleaseError> {
        let Some(held) = self.held.take() else { return Ok(Released::Ended) };
        let engine = &self.engine;
        if let Some(update) = held.take_hold_off(engine) {
            return match held.send_holds(engine, update, None).await {
                Err(ReenterError::Lost(lost)) => Err(ReleaseError::Lost(lost)),
                // What counts is the count in memory.
                _ => Ok(Released::StillHeld(update.count)),
            };
        }
        let lost = |reason| ReleaseError::Lost(LeaseLost::new(&held.lease, reason));
        let Some(release) = engine.release(&held, HoldEnd::Released).map_err(lost)? else {
            return Ok(Released::Ended);
        };
        // ADR 0001
        let error = match release.wait(None, false).await {
            Ok(DeliveryEnd::Released) => return Ok(Released::Ended),
            Ok(DeliveryEnd::Kept { remaining }) => return Ok(Released::Kept { remaining }),
            Ok(DeliveryEnd::Lost(reason)) => return Err(lost(reason)),
            // `wait` tells the second one as an error.
            Ok(DeliveryEnd::Gone | DeliveryEnd::Unconfirmed) => heard_too_late(),
            Err(error) => error.for_no_lock(),
        };
        let (lock, fence) = (held.lease.name().clone(), held.lease.fence());
        let stays_closed = closed_for(held.lease.closed_until(), engine.clock.now()).is_some();
        Err(ReleaseError::Unconfirmed { lock, fence, stays_closed, error })
    }

    fn ended(&self) -> ReenterError {
        let reason = match self.lease.state() {
            LeaseState::Lost(reason) => reason,
            LeaseState::Held { .. } | LeaseState::Released => LossReason::Gone,
        };
        ReenterError::Lost(LeaseLost::new(&self.lease.0, reason))
    }
}

/// What an [`Acquire`](crate::Acquire) yields: the guard of a writer, or of a reader.
#[doc(hidden)]
pub trait AcquiredGuard: Send + Sized + 'static {
    /// A view of its lease.
    type Lease;
    fn of(guard: Guard, by: Option<&Owner>) -> Self;
    fn view(&self) -> Self::Lease;
    fn guard(&self) -> &Guard;
    fn into_guard(self) -> Guard;
}

impl AcquiredGuard for Guard {
    type Lease = Lease;

    fn of(guard: Guard, _by: Option<&Owner>) -> Self {
        guard
    }

    fn view(&self) -> Lease {
        self.lease()
    }

    fn guard(&self) -> &Guard {
        self
    }

    fn into_guard(self) -> Guard {
        self
    }
}

impl Deref for Guard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

/// For the storage's gate, as [`Lease::stamp`] is.
impl From<&Guard> for Stamp {
    fn from(guard: &Guard) -> Self {
        guard.stamp()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        match held.take_hold_off(&self.engine) {
            Some(update) => drop(self.engine.make_hold(&held.lease, update)),
            // The runtime sends the release; a loss has been told already.
            None => drop(self.engine.release(&held, HoldEnd::Dropped)),
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

impl SharedLease {
    /// Sends the count of holds, and waits for the answer, until `until` at most.
    ///
    /// An answer that does not come refuses nothing: the lease is believed until its deadline
    /// anyway, and the runtime goes on telling the absolute count.
    async fn send_holds(
        &self,
        engine: &Engine,
        update: HoldUpdate,
        until: Option<Instant>,
    ) -> Result<(), ReenterError> {
        let lease = &self.lease;
        let sent = match engine.make_hold(lease, update) {
            Some(hold) => hold.wait(until, true).await.map(|_| ()),
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
    fn take_hold_off(&self, engine: &Engine) -> Option<HoldUpdate> {
        self.holds.lock_unless(|| engine.is_forked())?.leave(engine.numbers.next_change())
    }
}

/// The lease was held to the end; whether its release or the end of its time came first is unknown.
fn heard_too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "the server answered a release after the lease's time: it has the lease no more",
        "nothing needs to be done",
    )
}
