use std::time::Duration;

use leasehold_core::Instant;

use crate::ManualClock;

/// How a process's clock runs beside the world's: an offset, and a rate a little off.
#[derive(Debug, Clone, Copy)]
pub struct Drift {
    offset: Duration,
    /// How far the clock runs in a million nanoseconds of the world.
    rate: u64,
}

/// A rate that is right.
const TRUE_RATE: u64 = 1_000_000;

impl Drift {
    /// A clock that is ahead by `offset`, and runs `rate` nanoseconds in a million of the world's.
    pub fn new(offset: Duration, rate: u64) -> Self {
        Self { offset, rate }
    }

    /// A clock that shows the world's time.
    pub fn none() -> Self {
        Self::new(Duration::ZERO, TRUE_RATE)
    }

    /// What the clock shows at an instant of the world.
    pub fn local(&self, world: Instant) -> Instant {
        let ran = world.saturating_since(ManualClock::START);
        ManualClock::START + self.offset + scaled(ran, self.rate, TRUE_RATE, 0)
    }

    /// The first instant of the world at which the clock shows `local` or later.
    pub fn world(&self, local: Instant) -> Instant {
        let ran = local.saturating_since(ManualClock::START + self.offset);
        ManualClock::START + scaled(ran, TRUE_RATE, self.rate, self.rate.saturating_sub(1))
    }
}

fn scaled(time: Duration, times: u64, over: u64, plus: u64) -> Duration {
    let nanos = (time.as_nanos() * u128::from(times) + u128::from(plus)) / u128::from(over.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_no_earlier_than_its_own_clock_says() {
        for rate in [991_000, 999_999, TRUE_RATE, 1_009_000] {
            let drift = Drift::new(Duration::from_nanos(12_345), rate);
            for nanos in [0, 1, 7, 999_999_999, 123_456_789_012] {
                let local = drift.local(ManualClock::START) + Duration::from_nanos(nanos);
                let world = drift.world(local);
                assert!(drift.local(world) >= local, "{rate} {nanos}");
                let before = world - Duration::from_nanos(1);
                assert!(nanos == 0 || drift.local(before) < local, "{rate} {nanos}");
            }
        }
    }
}
