use std::time::Duration;

/// How a store mints fence tokens, and for how long it remembers the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FenceSettings {
    /// Where tokens come from.
    pub policy: FencePolicy,
    /// How long a counter outlives the last grant of its name; 7 days by default, at least a
    /// minute, without effect under [`FencePolicy::Counter`], whose counters live for ever.
    pub retention: Duration,
}

impl Default for FenceSettings {
    fn default() -> Self {
        Self { policy: FencePolicy::default(), retention: Duration::from_secs(7 * 24 * 60 * 60) }
    }
}

/// Where fence tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FencePolicy {
    /// One more than the last, raised to the server's time in microseconds: 16 digits that keep
    /// growing when Redis loses its data.
    #[default]
    TimeFloor,
    /// Plainly 1, 2, 3…: readable, but tokens repeat when Redis loses the counter (restart
    /// without persistence, `FLUSHALL`, eviction, failover). The counter has no TTL.
    Counter,
}

impl FencePolicy {
    /// The retention as scripts take it: milliseconds, or 0 for a counter without TTL.
    pub(crate) fn retention_millis(self, retention: Duration) -> u64 {
        match self {
            Self::TimeFloor => u64::try_from(retention.as_millis()).unwrap_or(u64::MAX),
            Self::Counter => 0,
        }
    }
}
