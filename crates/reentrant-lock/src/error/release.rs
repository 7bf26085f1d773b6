use leasehold_core::{FenceToken, LockName, StoreError, lease::LossReason};

/// Why a release did not end a lease as it should.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lease had been lost before: what was done under it may have met another holder.
    #[error(
        "lock {lock:?}: the lease (fence {fence}) was lost before its release: {reason}; rely on the fence check of your storage"
    )]
    Lost {
        /// The lock.
        lock: LockName,
        /// The fence of the lost lease.
        fence: FenceToken,
        /// Why it was lost.
        reason: LossReason,
    },
    /// The lease was held to the end, but the server has not confirmed its release. The runtime
    /// goes on telling it, unless the server refuses for good; the lock is free once it hears, or
    /// when the ttl ends. With [`hold_at_least`](crate::Acquire::hold_at_least) it stays closed for the
    /// rest of that time once the server hears; if it never does, only until the ttl ends.
    #[error(
        "lock {lock:?}: the server has not confirmed the release of fence {fence}; nothing needs to be done: {}: {error}",
        what_follows(*keeps)
    )]
    Unconfirmed {
        /// The lock.
        lock: LockName,
        /// The fence of the lease.
        fence: FenceToken,
        /// Whether the lock is to stay closed for a while.
        keeps: bool,
        /// Why the server did not confirm it.
        error: StoreError,
    },
}

fn what_follows(keeps: bool) -> &'static str {
    if keeps {
        "the lock stays closed for its minimum once the server hears of it, and otherwise until the ttl ends"
    } else {
        "the lock is free once the server hears of it, or when the ttl ends"
    }
}
