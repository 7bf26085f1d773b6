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
    /// when the ttl ends.
    #[error(
        "lock {lock:?}: the server has not confirmed the release of fence {fence}; nothing needs to be done: the lock is free once the server hears of it, or when the ttl ends: {source}"
    )]
    Unconfirmed {
        /// The lock.
        lock: LockName,
        /// The fence of the lease.
        fence: FenceToken,
        /// Why the server did not confirm it.
        source: StoreError,
    },
}
