use std::{fmt, time::Duration};

/// How long a lease lives without renewal: 100 ms to 24 h, in whole milliseconds.
///
/// The default is 30 s. A shorter ttl frees a dead holder's lock sooner and tolerates shorter
/// pauses; the watchdog renews every third of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ttl(Duration);

impl Ttl {
    /// The shortest ttl.
    pub const MIN: Duration = Duration::from_millis(100);
    /// The longest ttl.
    pub const MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// Validates a ttl; fractions of a millisecond are cut off.
    ///
    /// # Errors
    ///
    /// [`TtlError`] below [`Ttl::MIN`] or above [`Ttl::MAX`].
    pub fn new(ttl: Duration) -> Result<Self, TtlError> {
        let whole = Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        if whole < Self::MIN || ttl > Self::MAX {
            return Err(TtlError { ttl });
        }
        Ok(Self(whole))
    }

    /// The ttl as a duration.
    pub fn get(self) -> Duration {
        self.0
    }

    /// The ttl in milliseconds, as scripts take it.
    pub fn as_millis(self) -> u64 {
        // Never truncates: a ttl is at most 24 h.
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A duration that no lease may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a ttl of {ttl:?} is out of range; choose one between {:?} and {:?}", Ttl::MIN, Ttl::MAX)]
pub struct TtlError {
    ttl: Duration,
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
