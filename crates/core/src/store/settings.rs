use std::{ops::RangeInclusive, time::Duration};

use crate::types::{LockName, NamePattern, SettingError};

/// How a store mints fence tokens, and for how long it remembers the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FenceSettings {
    /// Where tokens come from.
    pub policy: FencePolicy,
    retention: Duration,
    /// Those of the names that match.
    retentions_of: Vec<(NamePattern, Duration)>,
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
        Ok(Self { retention: Self::checked(retention)?, ..self })
    }

    /// Sets the [retention](Self::retention) of the names that match a pattern. Default: that of all names.
    ///
    /// A name that matches several patterns has the longest of their retentions.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use leasehold::{LockName, NamePattern, store::FenceSettings};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (hour, day) = (Duration::from_secs(3600), Duration::from_secs(24 * 3600));
    /// let fencing = FenceSettings::default().retention_of(NamePattern::new("jobs/*")?, hour)?;
    /// assert_eq!(fencing.counter_lifetime(&LockName::new("jobs/4711")?), hour);
    /// assert_eq!(fencing.counter_lifetime(&LockName::new("orders/42")?), 7 * day);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`retention`](Self::retention).
    // ADR 0007
    pub fn retention_of(
        mut self,
        names: NamePattern,
        retention: Duration,
    ) -> Result<Self, SettingError> {
        self.retentions_of.push((names, Self::checked(retention)?));
        Ok(self)
    }

    fn checked(retention: Duration) -> Result<Duration, SettingError> {
        SettingError::check("retention", retention, Self::MIN_RETENTION..=Self::MAX_RETENTION)
    }

    /// How long the counter of a name outlives its last grant: its [retention](Self::retention), or that
    /// of [its pattern](Self::retention_of).
    pub fn counter_lifetime(&self, name: &LockName) -> Duration {
        let of_name = self.retentions_of.iter().filter(|(names, _)| names.matches(name));
        of_name.map(|(_, retention)| *retention).max().unwrap_or(self.retention)
    }

    /// The shortest and the longest retention.
    #[doc(hidden)]
    pub fn retentions(&self) -> RangeInclusive<Duration> {
        let of_names = || self.retentions_of.iter().map(|(_, retention)| *retention);
        of_names().fold(self.retention, Duration::min)
            ..=of_names().fold(self.retention, Duration::max)
    }

    /// The retention of a name as scripts take it: milliseconds, or 0 for a counter without a time to live.
    #[doc(hidden)]
    pub fn retention_millis(&self, name: &LockName) -> u64 {
        match self.policy {
            FencePolicy::TimeFloor => {
                u64::try_from(self.counter_lifetime(name).as_millis()).unwrap_or(u64::MAX)
            }
            FencePolicy::Counter => 0,
        }
    }
}

impl Default for FenceSettings {
    fn default() -> Self {
        let retention = Duration::from_secs(7 * 24 * 60 * 60);
        Self { policy: FencePolicy::default(), retention, retentions_of: Vec::new() }
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
        let settings = FenceSettings::default;
        for good in [min, max] {
            assert_eq!(settings().retention(good).unwrap().retention, good);
            assert!(settings().retention_of(NamePattern::default(), good).is_ok());
        }
        let one = Duration::from_nanos(1);
        for bad in [Duration::ZERO, min.saturating_sub(one), max + one, Duration::MAX] {
            for error in [
                settings().retention(bad).unwrap_err(),
                settings().retention_of(NamePattern::default(), bad).unwrap_err(),
            ] {
                let error = error.to_string();
                let names_all = error.contains(&format!("retention of {bad:?}"))
                    && error.contains("between 3600s and 315360000s");
                assert!(names_all, "{error}");
            }
        }
        let (name, settings) = (LockName::new("a").unwrap(), settings().retention(max).unwrap());
        assert_eq!(settings.retention_millis(&name), 315_360_000_000);
        assert_eq!(settings.policy(FencePolicy::Counter).retention_millis(&name), 0);
    }

    #[test]
    fn a_name_has_the_longest_retention_of_its_patterns() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let mut patterns = [("jobs/*", 2), ("*/slow/*", 900), ("*/quick", 1)];
        for _ in 0..2 {
            let settings =
                patterns.iter().fold(FenceSettings::default(), |settings, (names, of)| {
                    settings.retention_of(NamePattern::new(names).unwrap(), hours(*of)).unwrap()
                });
            for (name, expected) in [
                ("jobs/1", 2),
                ("jobs/slow/1", 900),
                ("jobs/quick", 2),
                ("other/quick", 1),
                ("jobs", 7 * 24),
            ] {
                let name = LockName::new(name).unwrap();
                assert_eq!(settings.counter_lifetime(&name), hours(expected), "{name}");
            }
            assert_eq!(settings.retentions(), hours(1)..=hours(900));
            let plain = settings.policy(FencePolicy::Counter);
            assert_eq!(plain.retention_millis(&LockName::new("jobs/1").unwrap()), 0);
            // Their order is of no meaning.
            patterns.reverse();
        }
        let settings = FenceSettings::default();
        assert_eq!(settings.retentions(), hours(7 * 24)..=hours(7 * 24));
    }
}
