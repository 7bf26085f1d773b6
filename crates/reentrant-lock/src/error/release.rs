use leasehold_core::{FenceToken, LockName, StoreError};

use super::LeaseLost;

/// Why a release did not end a lease as it should.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lease had been lost before: what was done under it may have met another holder.
    #[error("{0}; it was lost before its release: rely on the fence check of your storage")]
    Lost(LeaseLost),
    /// The lease was held to the end, but the server has not confirmed its release. The runtime
    /// goes on telling it, unless the server refuses for good; the lock is free once it hears, or
    /// when the ttl ends. With [`min_hold`](crate::Acquire::min_hold) it stays closed for the
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
        "the lock stays closed for its minimum once the server has the release, and otherwise until the ttl ends"
    } else {
        "the lock is free once the server has the release, or when the ttl ends"
    }
}
