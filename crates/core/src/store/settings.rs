use std::time::Duration;

use crate::types::SettingError;

/// How a store mints fence tokens, and for how long it remembers the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FenceSettings {
    /// Where tokens come from.
    pub policy: FencePolicy,
    retention: Duration,
}

impl FenceSettings {
    /// The shortest retention: longer than a runtime remembers tokens. Otherwise a counter that
    /// expired would look like a loss of data.
    pub const MIN_RETENTION: Duration = Duration::from_secs(60 * 60);
    /// The longest retention, in whole milliseconds far below what a server accepts.
    pub const MAX_RETENTION: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

    /// Sets where tokens come from. Default: [`FencePolicy::TimeFloor`].
    #[must_use]
    pub fn policy(self, policy: FencePolicy) -> Self {
        Self { policy, ..self }
    }

    /// Sets how long a counter outlives the last grant of its name at least. Default: 7 days.
    ///
    /// It lives up to an eighth longer, so that most grants need not refresh it. Counters of
    /// [`FencePolicy::Counter`] never expire.
    ///
    /// # Errors
    ///
    /// [`SettingError`] below [`FenceSettings::MIN_RETENTION`], an hour, or above
    /// [`FenceSettings::MAX_RETENTION`], 3650 days.
    pub fn retention(self, retention: Duration) -> Result<Self, SettingError> {
        let range = Self::MIN_RETENTION..=Self::MAX_RETENTION;
        Ok(Self { retention: SettingError::check("retention", retention, range)?, ..self })
    }

    /// How long a counter outlives the last grant of its name; see [`retention`](Self::retention).
    pub fn counter_lifetime(self) -> Duration {
        self.retention
    }

    /// The retention as scripts take it: milliseconds, or 0 for a counter without a time to live.
    #[doc(hidden)]
    pub fn retention_millis(self) -> u64 {
        match self.policy {
            FencePolicy::TimeFloor => u64::try_from(self.retention.as_millis()).unwrap_or(u64::MAX),
            FencePolicy::Counter => 0,
        }
    }
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
    ///
    /// A grant while others wait takes 1,024 numbers, for as many tasks of one process; those that
    /// it does not need are skipped. Where another process uses the same lock with
    /// [`TimeFloor`](Self::TimeFloor), the tokens are its times from then on.
    Counter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_is_an_hour_to_ten_years() {
        let (min, max) = (FenceSettings::MIN_RETENTION, FenceSettings::MAX_RETENTION);
        let settings = FenceSettings::default();
        for good in [min, max] {
            assert_eq!(settings.retention(good).unwrap().retention, good);
        }
        let one = Duration::from_nanos(1);
        for bad in [Duration::ZERO, min.saturating_sub(one), max + one, Duration::MAX] {
            let error = settings.retention(bad).unwrap_err().to_string();
            let names_all = error.contains(&format!("retention of {bad:?}"))
                && error.contains("between 3600s and 315360000s");
            assert!(names_all, "{error}");
        }
        assert_eq!(settings.retention(max).unwrap().retention_millis(), 315_360_000_000);
        assert_eq!(settings.policy(FencePolicy::Counter).retention_millis(), 0);
    }
}
