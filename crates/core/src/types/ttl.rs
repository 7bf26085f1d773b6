use std::{
    fmt::{self, Debug},
    ops::{Bound, RangeBounds},
    time::Duration,
};

/// How long a lease lives without renewal: 100 ms to 24 h, in whole milliseconds.
///
/// The default is 30 s. A shorter ttl frees a dead holder's lock sooner and tolerates shorter
/// pauses; the watchdog renews every third of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ttl(u32);

impl Ttl {
    /// The shortest ttl.
    pub const MIN: Duration = Duration::from_millis(100);
    /// The longest ttl.
    pub const MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// Validates a ttl; fractions of a millisecond are cut off.
    ///
    /// # Errors
    ///
    /// [`SettingError`] below [`Ttl::MIN`] or above [`Ttl::MAX`].
    pub fn new(ttl: Duration) -> Result<Self, SettingError> {
        SettingError::check("ttl", ttl, Self::MIN..=Self::MAX)?;
        // In range, so its milliseconds fit.
        Ok(Self(u32::try_from(ttl.as_millis()).unwrap_or(u32::MAX)))
    }

    /// The ttl as a duration.
    pub fn get(self) -> Duration {
        Duration::from_millis(self.as_millis())
    }

    /// The ttl in milliseconds, as scripts take it.
    pub fn as_millis(self) -> u64 {
        u64::from(self.0)
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self(30_000)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.get(), f)
    }
}

/// A setting that is out of range: which one, the value that was given, and the range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a {setting} of {given} is out of range; choose {range}")]
pub struct SettingError {
    setting: &'static str,
    given: String,
    range: String,
}

impl SettingError {
    /// Checks that a value is in its range; `setting` is its name in words.
    ///
    /// # Errors
    ///
    /// [`SettingError`] when the value is out of range.
    #[doc(hidden)]
    pub fn check<T: PartialOrd + Debug>(
        setting: &'static str,
        value: T,
        range: impl RangeBounds<T>,
    ) -> Result<T, Self> {
        if range.contains(&value) {
            return Ok(value);
        }
        let range = match (range.start_bound(), range.end_bound()) {
            (Bound::Included(min), Bound::Included(max)) => {
                format!("one between {min:?} and {max:?}")
            }
            (Bound::Included(min), Bound::Unbounded) => format!("at least {min:?}"),
            (min, max) => format!("one from {min:?} to {max:?}"),
        };
        Err(Self { setting, given: format!("{value:?}"), range })
    }

    /// Returns the name of the setting.
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_inclusive_and_in_whole_milliseconds() {
        assert!(Ttl::new(Duration::ZERO).is_err());
        assert!(Ttl::new(Duration::from_micros(99_999)).is_err());
        assert!(Ttl::new(Ttl::MAX + Duration::from_nanos(1)).is_err());
        assert!(Ttl::new(Duration::MAX).is_err());
        assert_eq!(Ttl::new(Ttl::MAX).unwrap().as_millis(), 86_400_000);
        assert_eq!(Ttl::new(Duration::from_micros(100_999)).unwrap().as_millis(), 100);
    }
}
