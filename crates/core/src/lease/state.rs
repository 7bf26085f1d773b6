use std::fmt;

use crate::clock::Instant;

/// What a holder may believe about its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// The lease is held; without a renewal it is believed until the given instant.
    Held {
        /// When belief ends.
        until: Instant,
    },
    /// The lease is gone, for good: lost never turns back into held.
    Lost(LossReason),
    /// The holder released the lease.
    Released,
}

impl LeaseState {
    /// Whether the lease is held.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Held { .. })
    }
}

/// Why a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// No renewal was confirmed before the local deadline: the server was out of reach, or this
    /// process was paused.
    Expired,
    /// The server no longer has the lease: it expired there, was force-released, or its key was
    /// deleted or overwritten.
    Gone,
    /// The holder kept it for longer than its `max_hold`.
    MaxHold,
    /// The runtime was shut down while the lease was held.
    Shutdown,
    /// The task that renews leases ended: its tokio runtime stopped, or it panicked.
    WatchdogStopped,
}

impl LossReason {
    /// Every reason, for metrics that start at zero.
    pub const ALL: &[Self] =
        &[Self::Expired, Self::Gone, Self::MaxHold, Self::Shutdown, Self::WatchdogStopped];

    /// The reason as a metric label.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Gone => "gone",
            Self::MaxHold => "max_hold",
            Self::Shutdown => "shutdown",
            Self::WatchdogStopped => "watchdog_stopped",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => {
                "no renewal was confirmed in time (the server was out of reach, or this process was paused)"
            }
            Self::Gone => {
                "the server no longer has it (it expired, was force-released, or its data was lost)"
            }
            Self::MaxHold => "it was held longer than its max_hold",
            Self::Shutdown => "the runtime was shut down",
            Self::WatchdogStopped => "the task that renews leases has stopped",
        })
    }
}
