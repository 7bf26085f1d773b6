use std::{fmt, time::Duration};

use leasehold_core::{LockName, StoreError};

use super::timeout::whole_millis;

/// The server did not answer, or refused: an outage, or a server that is full, loads its data, was
/// made a replica or has too few of them; and not a taken lock.
///
/// If too few replicas acknowledged a grant that asked for them, the field
/// [`error`](Self::error) [is unacknowledged](StoreError::is_unacknowledged).
///
/// Whether the lock is free is unknown. What the call may have left is withdrawn or expires.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unavailable {
    /// The lock.
    pub lock: LockName,
    /// How long the call tried.
    pub waited: Duration,
    /// For how long no command of this runtime has been answered, for whatever lock. If
    /// [`answers_others`](Self::answers_others), for how long the commands for this lock have
    /// failed. It may have begun before the call.
    pub silent_for: Duration,
    /// Whether the server answers: it refused the commands for this lock, or answered others.
    pub answers_others: bool,
    /// How many commands failed in that time: of this runtime, for whatever lock. If
    /// [`answers_others`](Self::answers_others), for this lock.
    pub failed: u64,
    /// Why the last of them failed.
    pub error: StoreError,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, failed, error, .. } = self;
        let (silent_for, waited) = (whole_millis(self.silent_for), whole_millis(self.waited));
        write!(f, "lock {lock:?}: ")?;
        match (self.answers_others, error.is_answer(), failed) {
            (true, true, 0 | 1) => {
                write!(f, "the server answers, and the command for this lock failed")
            }
            (true, true, _) => write!(
                f,
                "the server answers, and {failed} commands for this lock failed in {silent_for:?}"
            ),
            (true, false, 0 | 1) => {
                write!(f, "its command was not answered, while others of this process were")
            }
            (true, false, _) => write!(
                f,
                "{failed} commands for it were not answered in {silent_for:?}, while others of this process were"
            ),
            (false, ..) if silent_for.is_zero() => write!(f, "the server did not answer"),
            (false, ..) => write!(f, "the server has not answered for {silent_for:?}"),
        }?;
        if !self.answers_others && *failed > 1 {
            write!(f, ", and {failed} commands of this process failed")?;
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
