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
    /// The owner reads the lock, and asks to write: it would wait for itself.
    #[error(
        "lock {lock:?}: its owner reads it, and would wait for itself to write; drop its read guards first, or acquire to write from the start"
    )]
    WouldDeadlock {
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
        Ttl::MAX
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
        Ttl::MAX
    )]
    Window,
    /// The store keeps nothing for so long: the nodes of a quorum forget what is older than its longest ttl.
    #[error(
        "{option} of {time:?} is longer than {longest:?}, the longest time for which the quorum keeps a lock; choose a shorter one, or a longer QuorumSettings::longest_ttl in every process"
    )]
    TooLong {
        /// What was asked for, as in `a ttl`.
        option: &'static str,
        /// The time that was asked for.
        time: Duration,
        /// The longest that the store keeps.
        longest: Duration,
    },
}

impl OptionsError {
    /// The longest bounded wait: 365 days.
    pub const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    /// The shortest outage patience: 10 ms.
    pub const MIN_OUTAGE_PATIENCE: Duration = Duration::from_millis(10);

    /// Checks that a store keeps a lock for so long.
    #[doc(hidden)]
    pub fn check_kept(option: &'static str, time: Duration, longest: Duration) -> Result<(), Self> {
        if time > longest { Err(Self::TooLong { option, time, longest }) } else { Ok(()) }
    }
}

/// Why a closure under a lock did not run to a clean end: that of a `with`, or of a `once`.
///
/// Work that ended while its lease was believed is no error, however its release went.
///
/// `?` turns it into `anyhow::Error` or `Box<dyn Error>`, whatever the body's error is: also a `String`, an
/// `anyhow::Error` or a `Box<dyn Error>`, which are no errors of their own. The price is that [`source`] tells
/// nothing of the body (ADR 0019). [`into_cause`](Self::into_cause) keeps the body's error as it is, with its
/// sources.
///
/// [`source`]: std::error::Error::source
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WithError<E> {
    /// The lock was not acquired; the closure was not called.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lease was lost before the closure's future ended; the future was dropped.
    #[error("{0}; its closure was stopped")]
    Lost(LeaseLost),
    /// The closure failed; the lock was released.
    #[error("{0}")]
    Body(E),
}

impl<E> WithError<WithError<E>> {
    /// The error of a `with` in whose closure another `with` re-enters the lock, as one error: what
    /// the inner one met. A re-entry after the loss is [`Lost`](Self::Lost), as the loss is.
    ///
    /// ```
    /// use leasehold::{LockRuntime, error::WithError};
    ///
    /// # async fn pay() -> Result<(), std::io::Error> { Ok(()) }
    /// async fn settle(locks: &LockRuntime) -> Result<(), WithError<std::io::Error>> {
    ///     let (lock, owner) = (locks.lock("accounts/7").unwrap(), locks.owner());
    ///     let outer = lock.acquire().owner(&owner).with(|_lease| async {
    ///         lock.acquire().owner(&owner).with(|_lease| pay()).await
    ///     });
    ///     outer.await.map_err(WithError::flatten)
    /// }
    /// ```
    pub fn flatten(self) -> WithError<E> {
        match self {
            Self::Acquire(error) => WithError::Acquire(error),
            Self::Lost(lost) | Self::Body(WithError::Acquire(AcquireError::Lost(lost))) => {
                WithError::Lost(lost)
            }
            Self::Body(error) => error,
        }
    }
}

impl<E> WithError<E> {
    /// The closure's own error, if it is one.
    ///
    /// # Errors
    ///
    /// Any other error, unchanged.
    pub fn into_body(self) -> Result<E, Self> {
        match self {
            Self::Body(error) => Ok(error),
            other => Err(other),
        }
    }

    /// The error that was met, as one type of the caller's: an acquire's, a loss, or the body's own with its
    /// sources.
    ///
    /// ```
    /// # use leasehold::{ReentrantLock, error::WithError};
    /// # async fn pay() -> Result<(), std::io::Error> { Ok(()) }
    /// async fn settle(lock: &ReentrantLock) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    ///     lock.acquire().with(|_lease| pay()).await.map_err(WithError::into_cause)
    /// }
    /// ```
    pub fn into_cause<C>(self) -> C
    where
        C: From<E> + From<AcquireError> + From<LeaseLost>,
    {
        match self {
            Self::Acquire(error) => error.into(),
            Self::Lost(lost) => lost.into(),
            Self::Body(error) => error.into(),
        }
    }
}
