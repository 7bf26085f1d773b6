use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold::LockRuntime;
use leasehold_services::Failure;
use tokio::{sync::watch, time::sleep};

use crate::{books::Books, until};

/// Every copy has this schedule. A real one is longer.
const PERIOD: Duration = Duration::from_secs(1);
/// For how long a period is closed after its job: longer than the clocks of the copies differ.
const WINDOW: Duration = Duration::from_secs(60);

/// Writes a statement in each period, in one of the copies.
pub(crate) async fn run(
    locks: LockRuntime,
    books: Books,
    stopping: watch::Receiver<bool>,
) -> Result<(), Failure> {
    loop {
        tokio::select! {
            biased;
            () = until(stopping.clone()) => return Ok(()),
            () = sleep(PERIOD) => {}
        }
        let period = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / PERIOD.as_secs();
        let job = locks.once(format!("statement/{period}"))?.window(WINDOW);
        let period = i64::try_from(period)?;
        // A duplicate is no error: another copy runs the job, or has run it.
        if let Err(error) = job.run(async |lease| books.state(period, lease.stamp()).await).await {
            tracing::warn!(%error, "no statement");
        }
    }
}
