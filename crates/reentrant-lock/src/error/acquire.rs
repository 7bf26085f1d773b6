use std::time::Duration;

use leasehold_core::{LockName, NameError, SettingError, StoreError, Ttl};

use super::{LeaseLost, Unavailable, WaitTimeout};

/// Why a lock was not acquired.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The wait was over before the lock was free: others hold it.
    #[error(transparent)]
    Timeout(Box<WaitTimeout>),
    /// The server did not answer, or refused: an outage or a full server, and not a taken lock.
    #[error(transparent)]
    Unavailable(Box<Unavailable>),
    /// The owner held the lock already, and lost it: nested code must not go on. Or it is one of
    /// several locks, and was lost before the last of them was acquired.
    #[error("{0}; stop, drop the guards of its owner, and acquire anew")]
    Lost(LeaseLost),
    /// The store failed in a way that waiting does not mend, as for a missing right.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An option is out of range.
    #[error("lock {lock:?}: {option}")]
    Options {
        /// The lock.
        lock: LockName,
        /// The option.
        option: OptionsError,
    },
    /// The owner was made by another runtime.
    #[error(
        "lock {lock:?}: the owner belongs to another runtime; make one with this runtime's owner()"
    )]
    ForeignOwner {
        /// The lock.
        lock: LockName,
    },
    /// The owner has too many nested holds of this lease.
    #[error("lock {lock:?}: the owner re-entered it too often; a guard is never dropped")]
    TooManyHolds {
        /// The lock.
        lock: LockName,
    },
    /// The runtime gives no new leases: it was shut down, or is being drained.
    #[error("lock {lock:?}: the lock runtime {}", closed(*draining))]
    ShutDown {
        /// The lock.
        lock: LockName,
        /// Whether the runtime is being drained: held leases go on, and new ones are refused
        /// because this process is about to end.
        draining: bool,
    },
}

fn closed(draining: bool) -> &'static str {
    if draining {
        "is draining: it lets held leases end and gives no new ones; send new work to another process"
    } else {
        "was shut down; connect a new one"
    }
}

/// An option of an acquire, or a default of a runtime, that is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The ttl is out of range, or one of the times that only a runtime has.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The class cannot be a metric label.
    #[error(transparent)]
    Class(NameError),
    /// The wait is longer than a year.
    #[error(
        "a wait of {wait:?} is longer than {:?}; use wait_forever() to wait without a limit",
        Self::MAX_WAIT
    )]
    Wait {
        /// The wait that was asked for.
        wait: Duration,
    },
    /// The outage patience is below 10 ms.
    #[error(
        "an outage patience of {patience:?} is too short; give it at least {:?}, and more than a slow answer takes",
        Self::MIN_OUTAGE_PATIENCE
    )]
    OutagePatience {
        /// The patience that was asked for.
        patience: Duration,
    },
    /// The `max_hold` is zero.
    #[error("a max_hold of zero ends the lease before it begins; leave it out, or give it a time")]
    MaxHold,
    /// The `min_hold` is longer than a day.
    #[error(
        "a lock is kept closed for at most {:?} after its lease; give min_hold() less",
        Self::MAX_CLOSED
    )]
    MinHold,
    /// Locks are to be kept idle for longer than their ttl allows.
    #[error(
        "an idle lock cannot be kept for {keep_idle:?}; give keep_idle() at most {longest:?}, or the runtime a longer ttl"
    )]
    KeepIdle {
        /// The time that was asked for.
        keep_idle: Duration,
        /// The longest that the runtime's ttl allows.
        longest: Duration,
    },
    /// The window of a `once` is longer than a day.
    #[error(
        "a lock is kept closed for at most {:?} after its lease; give the window less, and let the storage remember the key",
        Self::MAX_CLOSED
    )]
    Window,
}

impl OptionsError {
    /// The longest bounded wait: 365 days.
    pub const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    /// The shortest outage patience: 10 ms.
    pub const MIN_OUTAGE_PATIENCE: Duration = Duration::from_millis(10);
    /// The longest time for which a lock stays closed after its lease: 24 h.
    pub const MAX_CLOSED: Duration = Ttl::MAX;
}
