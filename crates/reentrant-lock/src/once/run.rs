use std::future::Future;

use leasehold_core::lease::LossReason;
use leasehold_watchdog::LeaseEnd;

use crate::{
    error::{ReleaseError, RunOnceError},
    lease::Lease,
    with::run_while_held,
};

use super::{
    builder::Once,
    outcome::{Begun, OnceOutcome},
};

impl Once {
    /// Runs a closure's future if the door is open, and closes the door for the window if it
    /// succeeds; otherwise tells at once who came first.
    ///
    /// Before every poll of the future the clock is checked; when the lease is lost the future is
    /// dropped where it stands. An error or a panic of the future opens the door.
    ///
    /// # Errors
    ///
    /// - [`RunOnceError::Acquire`] when the run could not begin; the closure was not called.
    /// - [`RunOnceError::Lost`] when the lease was lost while the future ran.
    /// - [`RunOnceError::Body`] with the closure's own error; the door is open again.
    /// - [`RunOnceError::Unconfirmed`] with the closure's value, when the work was done, and the
    ///   door may be open.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and opens the door, unless the closure's future had
    /// succeeded: then the door stays closed.
    pub async fn run<T, E, F>(
        &self,
        body: impl FnOnce(Lease) -> F,
    ) -> Result<OnceOutcome<T>, RunOnceError<T, E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let run = match self.begin().await? {
            Begun::First(run) => run,
            Begun::Duplicate(duplicate) => return Ok(OnceOutcome::Duplicate(duplicate)),
        };
        match run_while_held(run.guard(), body(run.lease())).await {
            Ok(Ok(value)) => match run.succeed().await {
                Ok(()) => Ok(OnceOutcome::Ran(value)),
                Err(source) => Err(RunOnceError::Unconfirmed { value, source }),
            },
            Ok(Err(error)) => {
                // The closure's error wins.
                let _: Result<_, ReleaseError> = run.fail().await;
                Err(RunOnceError::Body(error))
            }
            Err(end) => {
                let (lock, fence) = (run.name().clone(), run.fence());
                let reason = match end {
                    LeaseEnd::Lost(reason) => reason,
                    // Cannot be: the guard is here, so its hold still stands.
                    LeaseEnd::Released => LossReason::Gone,
                };
                Err(RunOnceError::Lost { lock, fence, reason })
            }
        }
    }
}
