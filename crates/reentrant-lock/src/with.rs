use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use leasehold_watchdog::LeaseEnd;

use crate::{
    acquire::Acquire,
    error::{ReleaseError, WithError},
    guard::Guard,
    lease::Lease,
};

impl Acquire {
    /// Acquires the lock, runs a closure's future under it, and releases it.
    ///
    /// Before every poll of the future the clock is checked; when the lease is lost the future is
    /// dropped where it stands. A panic of the future releases the lock and goes on.
    ///
    /// # Errors
    ///
    /// - [`WithError::Acquire`] when the lock was not acquired; the closure was not called.
    /// - [`WithError::Lost`] when the lease was lost while the future ran.
    /// - [`WithError::Body`] with the closure's own error, whatever became of the release.
    /// - [`WithError::Release`] with the closure's value, when only the release failed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and hands the release to the reaper.
    pub async fn with<T, E, F>(self, body: impl FnOnce(Lease) -> F) -> Result<T, WithError<T, E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let guard = self.await?;
        let outcome = run_while_held(&guard, body(guard.lease())).await;
        match outcome {
            Ok(Ok(value)) => match guard.release().await {
                Ok(_) => Ok(value),
                Err(source) => Err(WithError::Release { value, source }),
            },
            Ok(Err(error)) => {
                // The closure's error wins.
                let _: Result<_, ReleaseError> = guard.release().await;
                Err(WithError::Body(error))
            }
            Err(LeaseEnd::Lost(reason)) => {
                let (lock, fence) = (guard.name().clone(), guard.fence());
                Err(WithError::Lost { lock, fence, reason })
            }
            Err(LeaseEnd::Released) => {
                // Cannot be: the guard is here, so its hold still stands.
                let (lock, fence) = (guard.name().clone(), guard.fence());
                let reason = leasehold_core::lease::LossReason::Gone;
                Err(WithError::Lost { lock, fence, reason })
            }
        }
    }
}

/// Polls a body only while its lease is held.
pub(crate) async fn run_while_held<O>(
    guard: &Guard,
    body: impl Future<Output = O>,
) -> Result<O, LeaseEnd> {
    let mut lost = pin!(guard.lost());
    let mut body = pin!(body);
    poll_fn(|cx| {
        if let Poll::Ready(end) = lost.as_mut().poll(cx) {
            return Poll::Ready(Err(end));
        }
        body.as_mut().poll(cx).map(Ok)
    })
    .await
}
