use std::{fmt, time::Duration};

use leasehold_core::{StoreError, outage::tenths};

/// How a lock runtime is, as far as it knows at one moment.
///
/// [`is_ready`](Self::is_ready) is the answer of a readiness probe, and its `Display` says why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Health {
    /// For how long the server has answered, counted from the end of its last silence; `None` while it is
    /// silent, before its first answer, and while its last answer is a refusal that only an operator can lift.
    pub answering_for: Option<Duration>,
    /// For how long the server has been silent: what was sent has had no answer for at least 500 ms, and
    /// for four usual round trips. Or for how long this process has heard nothing, if that is 5 s and more since
    /// it was first asked for its health: it stands still, and [`error`](Self::error) says so. `None` while the
    /// server answers.
    pub silent_for: Option<Duration>,
    /// Why the last command failed, if the server is silent and a command has failed; or the last answer, if that is
    /// a refusal. One that may pass, as of a server that is full or was made a replica, leaves the server answering.
    pub error: Option<StoreError>,
    /// How many leases are held that are lost unless the server answers in time; zero while it answers.
    pub leases_at_risk: usize,
    /// Whether no new lease is given: a drain or a shutdown has begun, or the tokio runtime of the lock
    /// runtime has ended.
    pub draining: bool,
}

impl Health {
    /// Whether the runtime can give leases: the server answers, has not refused for good, and no drain has begun.
    pub fn is_ready(&self) -> bool {
        self.answering_for.is_some() && !self.draining
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_ours = self.error.as_ref().is_some_and(StoreError::is_ours);
        match (self.answering_for, self.silent_for) {
            (Some(time), _) => write!(f, "the server has answered for {:?}", tenths(time)),
            (None, Some(time)) if is_ours => {
                write!(f, "this process has heard nothing for {:?}", tenths(time))
            }
            (None, Some(time)) => write!(f, "the server has not answered for {:?}", tenths(time)),
            (None, None) if self.error.as_ref().is_some_and(StoreError::is_answer) => {
                write!(f, "the server refuses")
            }
            (None, None) => write!(f, "the server has not answered yet"),
        }?;
        if self.leases_at_risk > 0 {
            write!(f, "; leases at risk: {}", self.leases_at_risk)?;
        }
        if self.draining {
            write!(f, "; no new lease is given, because the runtime ends")?;
        }
        self.error.iter().try_for_each(|error| write!(f, "; {error}"))
    }
}
