use std::{future::Future, sync::Arc, time::Duration};

use leasehold_core::{AcquisitionId, FenceToken, LockName, Stamp, lease::LossReason};
use leasehold_watchdog::Lost;
use tokio_util::sync::CancellationToken;

use crate::{
    error::{LeaseLost, ReleaseError, SucceedError},
    guard::{Guard, Released},
    lease::Lease,
    release::rest,
};

/// A run under way, whose lease is renewed for as long as this lives.
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
    window: Duration,
}

impl OnceGuard {
    pub(super) fn new(guard: Guard, window: Duration) -> Self {
        Self { guard, window }
    }

    /// The name of the run, and of its lock.
    pub fn name(&self) -> &LockName {
        self.guard.name()
    }

    /// The id of the run's lease, never used for another.
    pub fn id(&self) -> AcquisitionId {
        self.guard.id()
    }

    /// The fence token: hand it to the storage with every write.
    pub fn fence(&self) -> FenceToken {
        self.guard.fence()
    }

    /// What a storage's gate asks for: the fence, and the id of the lease.
    pub fn stamp(&self) -> Stamp {
        self.guard.stamp()
    }

    /// Whether the lease is held; looks at the clock first.
    pub fn is_held(&self) -> bool {
        self.guard.is_held()
    }

    /// For how long the lease may be believed without another renewal; zero when it is over.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// A future, borrowing nothing, that resolves when the lease is over: another run may begin.
    pub fn lost(&self) -> Lost {
        self.guard.lost()
    }

    /// A token that is cancelled when the lease is over.
    pub fn cancellation(&self) -> CancellationToken {
        self.guard.cancellation()
    }

    /// A view of the lease for others to watch.
    pub fn lease(&self) -> Lease {
        self.guard.lease()
    }

    /// The work is done: the lock stays closed for the window, counted from this call.
    ///
    /// `Ok` means that the server has confirmed it. This answers within one command timeout; what
    /// the server has not confirmed by then, the runtime goes on telling it until the lease's ttl
    /// is over.
    ///
    /// # Errors
    ///
    /// The work is done in any case; only the lock may be open.
    ///
    /// - [`SucceedError::Lost`] when the lease had been lost: another run may have begun.
    /// - [`SucceedError::Unconfirmed`] when the server has not confirmed it in time: the lock may
    ///   open with the ttl.
    ///
    /// # Cancel safety
    ///
    /// The success counts from the call on, polled or not; dropping the future leaves it to the
    /// runtime to send it to the server.
    #[must_use = "without the answer it is unknown whether the lock is closed"]
    pub fn succeed(self) -> impl Future<Output = Result<(), SucceedError>> + Send + use<> {
        let Self { guard, window } = self;
        let lease = Arc::clone(&guard.lease.0);
        if !window.is_zero() {
            lease.close_until(lease.clock().now() + window);
        }
        async move {
            let closed_until = lease.closed_until();
            match guard.release().await {
                Ok(Released::Kept { .. }) => Ok(()),
                Ok(_) if rest(closed_until, lease.clock().now()).is_none() => Ok(()),
                Ok(_) => Err(SucceedError::Lost(LeaseLost::new(&lease, LossReason::Gone))),
                Err(error) => Err(error.into()),
            }
        }
    }

    /// The work failed: the lock is open again when this returns, within one command timeout.
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
