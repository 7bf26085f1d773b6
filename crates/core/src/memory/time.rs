use std::time::Duration;

/// A moment of the embedded store's clock, in microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct ServerTime(u64);

impl ServerTime {
    /// The moment that lies `since_epoch` after the Unix epoch.
    pub(crate) fn at(since_epoch: Duration) -> Self {
        Self(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX))
    }

    /// Microseconds since the Unix epoch, as fence tokens count them.
    pub(crate) fn micros(self) -> u64 {
        self.0
    }

    /// The moment `duration` later.
    pub(crate) fn after(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    pub(crate) fn until(self, later: Self) -> Duration {
        Duration::from_micros(later.0.saturating_sub(self.0))
    }
}
