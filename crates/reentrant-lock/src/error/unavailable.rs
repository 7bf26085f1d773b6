use std::{fmt, time::Duration};

use leasehold_core::{LockName, StoreError};

use super::timeout::whole_millis;

/// A server that did not answer for as long as a call puts up with: an outage, and not a taken
/// lock.
///
/// Whether the lock is free is unknown. The call left nothing behind but, at worst, a place or a
/// lease that is withdrawn or expires by itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unavailable {
    /// The lock.
    pub lock: LockName,
    /// How long the call tried.
    pub waited: Duration,
    /// For how long no command of this runtime has been answered, for whatever lock. It may have
    /// begun before the call.
    pub silent_for: Duration,
    /// Whether the server answered other commands of this runtime after this call had begun.
    pub answers_others: bool,
    /// How many commands of this runtime failed in that time, for whatever lock.
    pub failed: u64,
    /// Why the last of them failed.
    pub error: StoreError,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, failed, error, .. } = self;
        let (silent_for, waited) = (whole_millis(self.silent_for), whole_millis(self.waited));
        write!(f, "lock {lock:?}: ")?;
        if self.answers_others {
            write!(f, "its command was not answered, while others of this process were")?;
        } else if silent_for.is_zero() {
            write!(f, "the server did not answer")?;
        } else {
            write!(f, "the server has not answered for {silent_for:?}")?;
        }
        match failed {
            0 | 1 => {}
            failed => write!(f, ", and {failed} commands of this process failed")?,
        }
        if waited.is_zero() {
            write!(f, "; gave up at once")?;
        } else {
            write!(f, "; gave up after {waited:?}")?;
        }
        write!(f, "; whether the lock is free is unknown: {error}")
    }
}

/// Without a source: the text has the cause.
impl std::error::Error for Unavailable {}
