use std::{future::Future, time::Duration};

use leasehold_core::AcquisitionId;

use crate::{
    engine::Engine,
    error::{LeaseLost, ReleaseError, RunOnceError, SucceedError},
    lease::Lease,
    with::run_while_held,
};

use super::{
    builder::Once,
    outcome::{Begun, OnceOutcome},
};

impl Once {
    /// Runs a closure's future if the lock is open, and closes the lock for the window if it
    /// succeeds; otherwise says at once who came first.
    ///
    /// Before every poll of the future the clock is checked; when the lease is lost the future is
    /// dropped where it stands. An error or a panic of the future opens the lock.
    ///
    /// Work that ended while its lease was believed is done: its value is returned, also when the
    /// server has not confirmed within one command timeout that the lock is closed. The runtime
    /// goes on telling it until the lease's ttl is over; if no command reaches the server, the lock
    /// opens then. A warning in the log names the run: within 10 s one warning for each name, and
    /// for at most eight names. If your code must know, use [`begin`](Self::begin) and
    /// [`succeed`](super::OnceGuard::succeed).
    ///
    /// # Errors
    ///
    /// - [`RunOnceError::Acquire`] when the run could not begin; the closure was not called.
    /// - [`RunOnceError::Lost`] when the lease was lost before the future ended with a value.
    /// - [`RunOnceError::Body`] with the closure's own error; the lock is open again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and opens the lock, unless the closure's future had
    /// succeeded: then the lock stays closed.
    pub async fn run<T, E, F>(
        &self,
        body: impl FnOnce(Lease) -> F,
    ) -> Result<OnceOutcome<T>, RunOnceError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let run = match self.begin().await? {
            Begun::First(run) => run,
            Begun::Duplicate(duplicate) => return Ok(OnceOutcome::Duplicate(duplicate)),
        };
        match run_while_held(&run.guard, body(run.lease())).await {
            Ok(Ok(value)) => {
                let lease = run.id();
                // The work is done, whatever the server says.
                if let Err(error) = run.succeed().await {
                    warn_of(&self.acquire.lock.engine, lease, &error);
                }
                Ok(OnceOutcome::Ran(value))
            }
            Ok(Err(error)) => {
                // The closure's error wins.
                let _: Result<_, ReleaseError> = run.fail().await;
                Err(RunOnceError::Body(error))
            }
            Err(lost) => Err(RunOnceError::Lost(lost)),
        }
    }
}

/// Within this time each name is warned of once, and at most eight names are.
const PAUSE: Duration = Duration::from_secs(10);

/// Warns that a run succeeded, but that its lock may open before the window is over.
fn warn_of(engine: &Engine, lease: AcquisitionId, error: &SucceedError) {
    let (lock, fence, cause) = match error {
        SucceedError::Lost(LeaseLost { lock, fence, .. }) => (lock, fence, None),
        SucceedError::Unconfirmed { lock, fence, error } => (lock, fence, Some(error)),
    };
    let now = engine.clock.now();
    let mut ration = engine.unconfirmed.lock();
    let Some(left_out) = ration.take(lock, now, PAUSE) else { return };
    drop(ration);
    tracing::warn!(
        %lock, %lease, %fence, left_out,
        cause = cause.map(tracing::field::display),
        "the work is done, and the server has not confirmed that the lock stays closed: another run may \
         begin before the window is over"
    );
}
