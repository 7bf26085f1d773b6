use std::time::Duration;

use leasehold_core::{Clock, Instant, Sleep};

use crate::ManualClock;

/// The clock of a server: that of the world, whose time of day is behind by something.
#[derive(Debug)]
pub(super) struct Behind {
    pub(super) clock: ManualClock,
    pub(super) by: Duration,
}

impl Clock for Behind {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        self.clock.sleep_until(at)
    }

    fn unix_time(&self) -> Duration {
        self.clock.unix_time().saturating_sub(self.by)
    }
}
