use std::time::Duration;

use leasehold::{
    LossReason,
    error::{StoreError, StoreErrorKind},
};

/// So many seconds.
pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// So many milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// So many nanoseconds.
pub(crate) const fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

/// The last moment before a time is over.
pub(crate) fn just_before(time: Duration) -> Duration {
    time.saturating_sub(nanos(1))
}

/// A failure of a command that was not executed.
pub(crate) fn definite() -> StoreError {
    StoreError::new(StoreErrorKind::Definite, "refused", "try again")
}

/// A failure of a command that may have been executed.
pub(crate) fn indeterminate() -> StoreError {
    StoreError::new(StoreErrorKind::Indeterminate, "the connection broke", "try again")
}

/// A failure that waiting does not mend.
pub(crate) fn config() -> StoreError {
    StoreError::new(StoreErrorKind::Config, "no right to run this", "grant the right")
}

/// Whether a force-release may be told so: an answer of a real server may be here before the
/// message about it.
pub(crate) fn is_taken_away(reason: LossReason) -> bool {
    matches!(reason, LossReason::ForceReleased | LossReason::Gone)
}
