use std::{error::Error, time::Duration};

use leasehold::{LockRuntime, fencing::MemoryGate};
use leasehold_services::Place;
use tokio::time::{Instant, sleep};

use crate::NAMESPACE;

const PAUSE: Duration = Duration::from_millis(300);
const NAME: &str = "victim";

/// What was provoked.
#[derive(Debug, Default)]
pub(crate) struct Mischief {
    /// Leases that their holder was told to have lost.
    pub(crate) losses: u64,
    /// Stale writes that were refused.
    pub(crate) refused: u64,
    /// Stale writes that were accepted.
    pub(crate) accepted: u64,
}

/// Takes leases away from their holder, lets it write all the same, and lets the server forget its
/// fence counter: what dashboards and alerts are there for.
pub(crate) async fn run(
    place: &Place,
    [first, second]: [&LockRuntime; 2],
    gate: &MemoryGate,
    end: Instant,
) -> Result<Mischief, Box<dyn Error + Send + Sync>> {
    let mut done = Mischief::default();
    while Instant::now() < end {
        let victim = first.lock(NAME)?.class("mischief")?.acquire().await?;
        let mut loss = std::pin::pin!(victim.lost());
        first.force_release(NAME).await?;
        if tokio::time::timeout(PAUSE * 20, &mut loss).await.is_ok() {
            done.losses += 1;
        }
        let heir = second.lock(NAME)?.class("mischief")?.acquire().await?;
        gate.write(NAME, heir.stamp(), || {})?;
        heir.release().await?;
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

/// Loses the counter of the victim's lock.
async fn forget(place: &Place) -> Result<(), Box<dyn Error + Send + Sync>> {
    match place {
        // Everybody's: the embedded store forgets all or nothing.
        Place::Embedded(store) => store.clear(),
        Place::Redis(url) => {
            let client = redis::Client::open(url.as_str())?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            let key = format!("{NAMESPACE}:{{{NAME}}}:fence");
            redis::cmd("DEL").arg(key).exec_async(&mut connection).await?;
        }
    }
    Ok(())
}
