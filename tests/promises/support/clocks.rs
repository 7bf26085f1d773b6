use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold::time::{Clock, Instant};
use leasehold_core::Sleep;
use leasehold_testkit::ManualClock;

/// A manual clock whose timers never fire: a process that was paused, before its timers come round.
#[derive(Debug, Clone)]
pub(crate) struct TimerlessClock(pub(crate) ManualClock);

impl Clock for TimerlessClock {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn sleep_until(&self, _at: Instant) -> Sleep {
        Box::pin(std::future::pending())
    }

    fn unix_time(&self) -> Duration {
        self.0.unix_time()
    }
}

/// A manual clock on which a nanosecond passes with every look, as on a real one.
#[derive(Debug, Clone)]
pub(crate) struct TickingClock(pub(crate) ManualClock);

impl Clock for TickingClock {
    fn now(&self) -> Instant {
        self.0.advance(Duration::from_nanos(1));
        self.0.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        self.0.sleep_until(at)
    }

    fn unix_time(&self) -> Duration {
        self.0.unix_time()
    }
}

/// A manual clock that panics in each task that wants to sleep, once it is broken.
#[derive(Debug, Clone, Default)]
pub(crate) struct BrokenClock {
    pub(crate) manual: ManualClock,
    pub(crate) broken: Arc<AtomicBool>,
}

impl Clock for BrokenClock {
    fn now(&self) -> Instant {
        self.manual.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        assert!(!self.broken.load(Ordering::Relaxed), "the clock is broken, as the test wants it");
        self.manual.sleep_until(at)
    }

    fn unix_time(&self) -> Duration {
        self.manual.unix_time()
    }
}
