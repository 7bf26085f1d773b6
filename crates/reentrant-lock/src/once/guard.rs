use std::{future::Future, ops::Deref, sync::Arc, time::Duration};

use leasehold_core::lease::LossReason;

use crate::{
    error::{LeaseLost, ReleaseError},
    guard::{Guard, Released},
    lease::Lease,
    timing::closed_for,
};

/// A run under way, whose lease is renewed for as long as this lives; it dereferences to the
/// [`Lease`], whose name is that of the run.
///
/// [`succeed`](Self::succeed) closes the lock for the window. Everything else opens it: dropping
/// this, [`fail`](Self::fail), a panic, a cancelled task. It cannot be cloned, and succeeds at most
/// once:
///
/// ```compile_fail,E0382
/// # async fn example(run: leasehold_reentrant_lock::OnceGuard) {
/// let _ = run.succeed().await;
/// let _ = run.fail().await;
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a run that is dropped counts as failed, and its lock opens at once"]
pub struct OnceGuard {
    pub(super) guard: Guard,
    pub(super) window: Duration,
}

impl OnceGuard {
    /// Returns a view of the lease for others to watch.
    pub fn lease(&self) -> Lease {
        self.guard.lease()
    }

    /// Ends a run whose work is done: the lock stays closed for the window, counted from this call.
    ///
    /// `Ok` means that the server has confirmed it. This answers within one command
    /// timeout; the runtime goes on telling the server until the ttl is over.
    ///
    /// # Errors
    ///
    /// The work is done in any case; only the lock may be open.
    ///
    /// - [`ReleaseError::Lost`] when the lease had been lost: another run may have begun.
    /// - [`ReleaseError::Unconfirmed`] when the server has not confirmed it in time: the lock may
    ///   open with the ttl.
    ///
    /// # Cancel safety
    ///
    /// The success counts from the call on, polled or not; dropping the future leaves it to the
    /// runtime to send it to the server.
    #[must_use = "without the answer it is unknown whether the lock is closed"]
    pub fn succeed(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + use<> {
        let Self { guard, window } = self;
        let lease = Arc::clone(&guard.lease.0);
        if !window.is_zero() {
            lease.close_until(lease.clock().now() + window);
        }
        async move {
            let closed_until = lease.closed_until();
            match guard.release().await {
                Ok(Released::Kept { .. }) => Ok(()),
                Ok(_) if closed_for(closed_until, lease.clock().now()).is_none() => Ok(()),
                Ok(_) => Err(ReleaseError::Lost(LeaseLost::new(&lease, LossReason::Gone))),
                Err(error) => Err(error),
            }
        }
    }

    /// Ends a run that failed: the lock is open again when this returns, within one command timeout.
    ///
    /// # Errors
    ///
    /// - [`ReleaseError::Lost`] when the lease had been lost: the lock was open before.
    /// - [`ReleaseError::Unconfirmed`] when the server has not confirmed it in time: it opens once
    ///   the server hears of it, or with the ttl.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it to the runtime to open the lock.
    pub async fn fail(self) -> Result<(), ReleaseError> {
        self.guard.release().await.map(|_| ())
    }
}

impl Deref for OnceGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.guard.lease
    }
}
