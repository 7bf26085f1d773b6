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
    /// The lease was held to the end, but the server could not be told; it ends with its ttl.
    #[error(
        "lock {lock:?}: the server could not be told of the release of fence {fence}; it is free when the ttl ends: {source}"
    )]
    Unconfirmed {
        /// The lock.
        lock: LockName,
        /// The fence of the lease.
        fence: FenceToken,
        /// The failure of the last attempt.
        source: StoreError,
    },
}
