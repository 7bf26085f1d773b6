//! What the unit tests share.

use std::time::Duration;

use leasehold_core::{AcquisitionId, Clock, FenceToken, Instant, RuntimeId, Sleep, Stamp};
use tokio::sync::watch;
use uuid::Uuid;

/// The stamp of lease `lease` with a fence.
pub(crate) fn stamp(fence: u64, lease: u64) -> Stamp {
    let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), lease);
    Stamp::new(FenceToken::try_from(fence).unwrap(), lease)
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandClock(watch::Sender<Duration>);

impl HandClock {
    /// Moves time on.
    pub(crate) fn move_by(&self, by: Duration) {
        self.0.send_modify(|now| *now += by);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Instant {
        Instant::at(*self.0.borrow())
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        let mut time = self.0.subscribe();
        Box::pin(async move {
            // The clock is gone: nobody moves it any more.
            if time.wait_for(|now| Instant::at(*now) >= at).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn unix_time(&self) -> Duration {
        *self.0.borrow()
    }
}
