use leasehold_core::{Instant, LockName, StoreError, StoreErrorKind, outage::Outage};

use crate::error::{AcquireError, Unavailable};

use super::core::Engine;

impl Engine {
    /// What a call that began at `started` ends with when the server did not answer; `error` is what
    /// its own command met, if it sent one.
    pub(crate) fn unavailable(
        &self,
        lock: &LockName,
        started: Instant,
        error: Option<StoreError>,
    ) -> AcquireError {
        let now = self.clock.now();
        let silence = self.outages().silence();
        let outage = silence.outage();
        let heard_at = silence.heard_at().filter(|heard_at| *heard_at >= started);
        // Without an outage, the command of this call alone has failed.
        let answers_others = outage.is_none() && error.is_some() && heard_at.is_some();
        let (since, failed, last_error) = match (outage, heard_at) {
            (Some(Outage { since, unanswered, last_error, .. }), _) => {
                (since, unanswered, last_error)
            }
            (None, Some(heard_at)) if answers_others => (heard_at, 1, None),
            // What was sent is still on its way.
            (None, _) => (silence.silent_since().unwrap_or(started), 0, None),
        };
        let error = error.or(last_error).unwrap_or_else(not_yet).for_no_lock();
        AcquireError::Unavailable(Box::new(Unavailable {
            lock: lock.clone(),
            waited: now.saturating_since(started),
            silent_for: now.saturating_since(since),
            answers_others,
            failed,
            error,
        }))
    }

    /// What a call that sends one command ends with when that failed.
    pub(crate) fn failed(
        &self,
        lock: &LockName,
        started: Instant,
        error: StoreError,
    ) -> AcquireError {
        if error.is_answer() || !error.kind().is_transient() {
            return error.for_lock(lock).into();
        }
        self.unavailable(lock, started, Some(error))
    }
}

/// Nothing was heard, and nothing has failed so far.
fn not_yet() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "nothing that was sent has been answered yet",
        "check server and network; where both are well, give the call more time than a slow answer takes",
    )
}
