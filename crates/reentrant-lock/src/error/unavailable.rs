use std::{fmt, time::Duration};

use leasehold_core::{LockName, StoreError};

use super::timeout::whole_millis;

/// A server that did not answer for as long as a call puts up with: an outage, and not a taken lock.
///
/// Nobody knows whether the lock is free. The call left nothing behind but, at worst, a place or a
/// lease that is withdrawn or expires by itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unavailable {
    /// The lock.
    pub lock: LockName,
    /// How long the call tried.
    pub waited: Duration,
    /// For how long no command of this runtime has been answered; it may have begun before the call.
    pub silent_for: Duration,
    /// How many commands of this runtime failed in that time.
    pub failed: u64,
    /// Why the last of them failed.
    pub error: StoreError,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, failed, error, .. } = self;
        let silent_for = whole_millis(self.silent_for);
        write!(f, "lock {lock:?}: the server has not answered for {silent_for:?}")?;
        match failed {
            0 | 1 => {}
            failed => write!(f, ", and {failed} commands failed")?,
        }
        let waited = whole_millis(self.waited);
        write!(f, "; gave up after {waited:?}, whether the lock is free is unknown: {error}")
    }
}

impl std::error::Error for Unavailable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
