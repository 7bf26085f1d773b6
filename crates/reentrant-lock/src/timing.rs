use std::time::Duration;

use leasehold_core::{Instant, Replication, SHORTEST_SILENCE, SettingError, Ttl};

use crate::{
    durations::{ENOUGH, PLACE_PAUSE},
    error::OptionsError,
};

/// The times that hold for all locks of a runtime, unless an acquire says otherwise; and the
/// acknowledgements that its leases need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// How long a lease lives without renewal. Default: 30 s.
    pub ttl: Ttl,
    /// Which acknowledgements grants and renewals need. Default: none.
    pub acks: Replication,
    /// How long an acquire waits for a lock. Default: 30 s.
    pub wait: Duration,
    /// For how long a grant waits to be taken, and a place in the queue for a sign of life; at
    /// most the ttl. Default: 3 s, at least 50 ms.
    pub claim_window: Duration,
    /// How long one command may take, at most half the ttl. Default: 2 s, at least 10 ms.
    pub command_timeout: Duration,
    /// After what time a call that still waits is reported. Default: 10 s, at least 100 ms.
    pub blocked_after: Duration,
    /// For how long an acquire waits without any answer of the server, never longer than its wait.
    /// Default: 5 s, at least 10 ms.
    pub outage_patience: Duration,
    /// For how long a lock stays with the runtime after its last lease, while nobody else wants it;
    /// at most [`longest_idle`](Self::longest_idle). Default: zero, not at all.
    pub keep_idle: Duration,
}

impl Timing {
    /// Checks the times against their ranges.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] naming the time that is out of range.
    pub fn validated(self) -> Result<Self, OptionsError> {
        let Self { claim_window, command_timeout, blocked_after, wait, keep_idle, .. } = self;
        let patience = self.outage_patience;
        SettingError::check("claim window", claim_window, Duration::from_millis(50)..)?;
        SettingError::check("command timeout", command_timeout, Duration::from_millis(10)..)?;
        SettingError::check("blocked report", blocked_after, Duration::from_millis(100)..)?;
        if wait > OptionsError::MAX_WAIT {
            return Err(OptionsError::Wait { wait });
        }
        if patience < OptionsError::MIN_OUTAGE_PATIENCE {
            return Err(OptionsError::OutagePatience { patience });
        }
        let longest = self.longest_idle();
        if keep_idle > longest {
            return Err(OptionsError::KeepIdle { keep_idle, longest });
        }
        Ok(self)
    }

    /// The longest time for which a lock can be kept idle: the ttl, less what a task needs that
    /// takes it at the end.
    pub fn longest_idle(&self) -> Duration {
        self.ttl.get().saturating_sub(self.enough(self.ttl))
    }

    /// How much belief a grant needs so that a task may enter at once.
    pub(crate) fn enough(&self, ttl: Ttl) -> Duration {
        (self.claim_window(ttl) / 4).min(ENOUGH)
    }

    /// How long one command about a lease of this ttl may take.
    pub(crate) fn command_deadline(&self, ttl: Ttl) -> Duration {
        self.command_timeout.min(ttl.get() / 2)
    }

    /// How long one heartbeat may take, so that others fit into the claim window.
    pub(crate) fn heartbeat_time(&self, ttl: Ttl) -> Duration {
        (self.claim_window(ttl) / 3).max(SHORTEST_SILENCE)
    }

    /// The pause between two commands about a place: three may be lost in a claim window.
    pub(crate) fn heartbeat_pause(&self, ttl: Ttl) -> Duration {
        (self.claim_window(ttl) / 4).max(PLACE_PAUSE)
    }

    /// How long a grant of this ttl waits to be taken over by its future.
    pub(crate) fn claim_window(&self, ttl: Ttl) -> Duration {
        self.claim_window.min(ttl.get())
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            ttl: Ttl::default(),
            acks: Replication::NONE,
            wait: Duration::from_secs(30),
            claim_window: Duration::from_secs(3),
            command_timeout: Duration::from_secs(2),
            blocked_after: Duration::from_secs(10),
            outage_patience: Duration::from_secs(5),
            keep_idle: Duration::ZERO,
        }
    }
}

/// What is left at `now` of the time until which a lock is to stay closed, in whole milliseconds
/// and never less than asked; `None` when it may open.
pub(crate) fn closed_for(closed_until: Option<Instant>, now: Instant) -> Option<Duration> {
    let left = closed_until?.saturating_since(now);
    if left.is_zero() {
        return None;
    }
    let millis = left.as_nanos().div_ceil(1_000_000);
    Some(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::at(Duration::from_micros(micros))
    }

    #[test]
    fn a_lock_is_never_closed_for_less_than_asked() {
        assert_eq!(closed_for(None, at(0)), None);
        assert_eq!(closed_for(Some(at(5_000)), at(5_000)), None);
        assert_eq!(closed_for(Some(at(5_000)), at(7_000)), None);
        assert_eq!(closed_for(Some(at(5_000)), at(1_000)), Some(Duration::from_millis(4)));
        assert_eq!(closed_for(Some(at(5_001)), at(1_000)), Some(Duration::from_millis(5)));
    }

    #[test]
    fn a_time_out_of_range_is_named_in_a_sentence() {
        let zero = Duration::ZERO;
        for (timing, words) in [
            (Timing { claim_window: zero, ..Timing::default() }, "a claim window of 0ns is out"),
            (Timing { blocked_after: zero, ..Timing::default() }, "a blocked report of 0ns is out"),
            (Timing { outage_patience: zero, ..Timing::default() }, "an outage patience of 0ns"),
            (Timing { keep_idle: Duration::from_secs(30), ..Timing::default() }, "an idle lock"),
        ] {
            let text = timing.validated().unwrap_err().to_string();
            assert!(text.starts_with(words), "{text}");
        }
    }
}
