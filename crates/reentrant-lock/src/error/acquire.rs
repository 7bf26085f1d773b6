use leasehold_core::{LockName, StoreError};

use super::{LeaseLost, OptionsError, Unavailable, WaitTimeout};

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
    /// The owner held the lock already, and lost it: nested code must not go on.
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
