use std::future::Future;

use crate::{
    error::{LeaseLost, ReleaseError, RunOnceError},
    lease::Lease,
    with::run_while_held,
};

use super::{
    builder::Once,
    outcome::{Begun, OnceOutcome},
    unconfirmed::warn_of,
};

impl Once {
    /// Runs a closure's future if the door is open, and closes the door for the window if it
    /// succeeds; otherwise tells at once who came first.
    ///
    /// Before every poll of the future the clock is checked; when the lease is lost the future is
    /// dropped where it stands. An error or a panic of the future opens the door.
    ///
    /// Work that ended while its lease was believed is done: its value is returned, also when the
    /// server has not confirmed within one command timeout that the door is closed. The runtime goes
    /// on telling it until the lease's ttl is over; if it never hears, the door opens then. A warning in
    /// the log names the run; within 10 s each name is warned of once, and at most eight names are.
    /// For work that must know, [`begin`](Self::begin) and [`succeed`](super::OnceGuard::succeed) tell.
    ///
    /// # Errors
    ///
    /// - [`RunOnceError::Acquire`] when the run could not begin; the closure was not called.
    /// - [`RunOnceError::Lost`] when the lease was lost before the future ended with a value.
    /// - [`RunOnceError::Body`] with the closure's own error; the door is open again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and opens the door, unless the closure's future had
    /// succeeded: then the door stays closed.
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
        match run_while_held(run.guard(), body(run.lease())).await {
            Ok(Ok(value)) => {
                let lease = run.id();
                // The work is done, whatever the server says.
                if let Err(error) = run.succeed().await {
                    warn_of(self.engine(), lease, &error);
                }
                Ok(OnceOutcome::Ran(value))
            }
            Ok(Err(error)) => {
                // The closure's error wins.
                let _: Result<_, ReleaseError> = run.fail().await;
                Err(RunOnceError::Body(error))
            }
            Err(reason) => Err(RunOnceError::Lost(LeaseLost::new(&run.lease().0, reason))),
        }
    }
}
