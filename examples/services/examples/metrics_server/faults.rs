use std::{error::Error, time::Duration};

use leasehold::{LockRuntime, fencing::MemoryGate};
use leasehold_services::Place;
use tokio::time::{Instant, sleep};

use crate::NAMESPACE;

const PAUSE: Duration = Duration::from_millis(300);
const NAME: &str = "victim";

/// The faults that were injected, and what they did.
#[derive(Debug, Default)]
pub(crate) struct Injected {
    /// Leases whose holder was told of the loss.
    pub(crate) losses: u64,
    /// Stale writes that were refused.
    pub(crate) refused: u64,
    /// Stale writes that were accepted.
    pub(crate) accepted: u64,
}

/// Ends leases by force, lets their holder write all the same, and lets the server lose its fence
/// counter. Dashboards and alerts show all of this.
pub(crate) async fn run(
    place: &Place,
    [first, second]: [&LockRuntime; 2],
    gate: &MemoryGate,
    end: Instant,
) -> Result<Injected, Box<dyn Error + Send + Sync>> {
    let mut done = Injected::default();
    while Instant::now() < end {
        let victim = first.lock(NAME)?.class("faults").acquire().await?;
        let mut loss = std::pin::pin!(victim.lost());
        first.force_release(NAME).await?;
        if tokio::time::timeout(PAUSE * 20, &mut loss).await.is_ok() {
            done.losses += 1;
        }
        let successor = second.lock(NAME)?.class("faults").acquire().await?;
        gate.write(NAME, successor.stamp(), || {})?;
        successor.release().await?;
        match gate.write(NAME, victim.stamp(), || {}) {
            Ok(()) => done.accepted += 1,
            Err(_) => done.refused += 1,
        }
        forget(place).await?;
        second.lock(NAME)?.acquire().await?.release().await?;
        sleep(PAUSE).await;
    }
    Ok(done)
}

/// Loses the counter of the victim's lock, which nobody holds: a part of the key of its lease.
async fn forget(place: &Place) -> Result<(), Box<dyn Error + Send + Sync>> {
    match place {
        // The embedded store loses all counters or none.
        Place::Embedded(store) => store.clear(),
        Place::Redis(url) => {
            let client = redis::Client::open(url.as_str())?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            let key = format!("{NAMESPACE}:{{{NAME}}}:lease");
            redis::cmd("DEL").arg(key).exec_async(&mut connection).await?;
        }
    }
    Ok(())
}
