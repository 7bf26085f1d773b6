use std::time::Duration;

use leasehold::{Guard, LockRuntime, error::AcquireError, fencing::GateError};
use leasehold_services::Failure;
use tokio::{sync::watch, time::sleep};

use crate::{
    books::{Books, Failed},
    until,
};

/// The time between two steps of the leader, and before the next term if one ended with an error.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until this copy leads, and adds up the deposits until another copy takes over, or this one stops.
pub(crate) async fn lead(
    locks: LockRuntime,
    books: Books,
    stopping: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let lock = locks.lock("leader")?.class("leader");
    loop {
        // Nothing is wrong with a follower that waits for days.
        let guard = match lock.acquire().wait_forever().blocked_after(Duration::MAX).await {
            Ok(guard) => guard,
            // The runtime is being drained: this copy stops.
            Err(AcquireError::ShutDown { .. }) => return Ok(()),
            // The server does not answer, or an operator has to act: the next call finds out when that is over.
            Err(error) => {
                tracing::warn!(%error, "no term");
                sleep(PAUSE).await;
                continue;
            }
        };
        tokio::select! {
            biased; // a leader that has lost its lease begins nothing more
            end = guard.lost() => tracing::warn!("stepping down: {end}"),
            () = until(stopping.clone()) => {}
            failed = term(&books, &guard) => tracing::warn!("stepping down: {failed}"),
        }
        // The others need not wait for the ttl. If that fails, they do, and nothing else is wrong.
        if let Err(error) = guard.release().await {
            tracing::warn!(%error, "the term is over");
        }
        sleep(PAUSE).await;
    }
}

/// The work of a leader; it ends with an error only.
async fn term(books: &Books, guard: &Guard) -> Failed {
    // Before the first write.
    let begun: Result<(), GateError> = books.begin_term(guard.stamp()).await;
    if let Err(error) = begun {
        return error.into();
    }
    loop {
        if let Err(failed) = books.add_up(guard.stamp()).await {
            return failed;
        }
        sleep(PAUSE).await;
    }
}
