use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use leasehold_core::lease::{LeaseState, LossReason};
use leasehold_watchdog::LeaseEnd;

use crate::{
    error::{LeaseLost, ReleaseError, WithError},
    guard::Guard,
    lease::Lease,
    lock::Acquire,
};

impl Acquire {
    /// Acquires the lock, runs a closure's future under it, and releases it.
    ///
    /// Before every poll of the future the clock is checked; when the lease is lost the future is
    /// dropped where it stands. A panic of the future releases the lock and goes on.
    ///
    /// Work that ended while its lease was believed is finished: its value is returned, however the
    /// release goes. This waits for the release for one command timeout at most; what the server
    /// has not confirmed by then, the runtime goes on telling it until the lease's ttl is over.
    /// Whether the lease was still there on the server is for the fence check of the storage to
    /// say.
    ///
    /// # Errors
    ///
    /// - [`WithError::Acquire`] when the lock was not acquired; the closure was not called.
    /// - [`WithError::Lost`] when the lease was lost before the future ended with a value.
    /// - [`WithError::Body`] with the closure's own error, however the release went.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and leaves the release to the runtime.
    pub async fn with<T, E, F>(self, body: impl FnOnce(Lease) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let guard = self.await?;
        let ended = run_while_held(&guard, body(guard.lease())).await.map_err(WithError::Lost)?;
        // What was done under the lease is done, whatever the server says.
        let _: Result<_, ReleaseError> = guard.release().await;
        ended.map_err(WithError::Body)
    }
}

/// Polls a body only while its lease is held; the error says that the lease was lost before the
/// body ended with a value.
pub(crate) async fn run_while_held<T, E>(
    guard: &Guard,
    body: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, E>, LeaseLost> {
    let mut lost = pin!(guard.lost());
    let mut body = pin!(body);
    let ended = poll_fn(|cx| match lost.as_mut().poll(cx) {
        Poll::Ready(LeaseEnd::Lost(reason)) => Poll::Ready(Err(reason)),
        // Cannot be: the guard is here, so its hold still stands.
        Poll::Ready(LeaseEnd::Released) => Poll::Ready(Err(LossReason::Gone)),
        Poll::Pending => body.as_mut().poll(cx).map(|ended| match guard.lease.state() {
            // The last poll may have taken longer than the lease was believed.
            LeaseState::Lost(reason) if ended.is_ok() => Err(reason),
            _ => Ok(ended),
        }),
    });
    ended.await.map_err(|reason| LeaseLost::new(&guard.lease.0, reason))
}
