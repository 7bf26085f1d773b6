use std::time::Duration;

/// How a store mints fence tokens, and for how long it remembers the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FenceSettings {
    /// Where tokens come from.
    pub policy: FencePolicy,
    /// How long a counter outlives the last grant of its name: an hour to 3650 days, 7 days by
    /// default. Without effect under [`FencePolicy::Counter`], whose counters live for ever.
    pub retention: Duration,
}

impl FenceSettings {
    /// The shortest retention.
    ///
    /// It outlasts what a runtime remembers of the tokens it has seen, or a counter whose time
    /// was simply over would pass for a loss of data.
    pub const MIN_RETENTION: Duration = Duration::from_secs(60 * 60);
    /// The longest retention, in whole milliseconds far below what a server accepts.
    pub const MAX_RETENTION: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

    /// The same settings with another policy.
    #[must_use]
    pub fn policy(self, policy: FencePolicy) -> Self {
        Self { policy, ..self }
    }

    /// The same settings with another retention, from [`FenceSettings::MIN_RETENTION`] to
    /// [`FenceSettings::MAX_RETENTION`]; checked where they are used.
    #[must_use]
    pub fn retention(self, retention: Duration) -> Self {
        Self { retention, ..self }
    }

    /// Checks the retention, unless the policy ignores it.
    ///
    /// # Errors
    ///
    /// [`RetentionError`] below [`FenceSettings::MIN_RETENTION`] or above
    /// [`FenceSettings::MAX_RETENTION`].
    pub fn validated(self) -> Result<Self, RetentionError> {
        let range = Self::MIN_RETENTION..=Self::MAX_RETENTION;
        if self.policy == FencePolicy::Counter || range.contains(&self.retention) {
            return Ok(self);
        }
        Err(RetentionError { retention: self.retention })
    }

    /// The same settings, with the retention moved to the nearer end of its range.
    pub(crate) fn clamped(self) -> Self {
        let retention = self.retention.clamp(Self::MIN_RETENTION, Self::MAX_RETENTION);
        Self { retention, ..self }
    }
}

impl Default for FenceSettings {
    fn default() -> Self {
        Self { policy: FencePolicy::default(), retention: Duration::from_secs(7 * 24 * 60 * 60) }
    }
}

/// A time for which no fence counter may be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a retention of {retention:?} is out of range; choose one between an hour and 3650 days, or \
     leave the default of 7 days"
)]
pub struct RetentionError {
    retention: Duration,
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

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = FenceSettings::MIN_RETENTION;
    const MAX: Duration = FenceSettings::MAX_RETENTION;
    const ONE: Duration = Duration::from_nanos(1);

    fn kept_for(retention: Duration, policy: FencePolicy) -> FenceSettings {
        FenceSettings { policy, retention }
    }

    #[test]
    fn a_retention_is_an_hour_to_ten_years() {
        assert!(FenceSettings::default().validated().is_ok());
        for good in [MIN, MAX] {
            assert!(kept_for(good, FencePolicy::TimeFloor).validated().is_ok(), "{good:?}");
        }
        for bad in [Duration::ZERO, MIN.saturating_sub(ONE), MAX + ONE, Duration::MAX] {
            let error = kept_for(bad, FencePolicy::TimeFloor).validated().unwrap_err().to_string();
            let named = error.contains(&format!("{bad:?}")) && error.contains("an hour and 3650");
            assert!(named, "{error}");
            assert!(kept_for(bad, FencePolicy::Counter).validated().is_ok(), "{bad:?}");
            assert!(kept_for(bad, FencePolicy::TimeFloor).clamped().validated().is_ok());
        }
        let clamped = kept_for(Duration::MAX, FencePolicy::TimeFloor).clamped();
        assert_eq!(clamped.policy.retention_millis(clamped.retention), 315_360_000_000);
    }
}
