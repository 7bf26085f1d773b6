use leasehold_core::{
    Fence, LockName, StoreError,
    lease::{Expiry, LeaseEnd, LossReason},
};
use leasehold_watchdog::HeldLease;

/// A lease that was lost: its lock, its fence, and why.
///
/// What was done under it may have met another holder: rely on the fence check of the storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lock {lock:?}: the lease (fence {fence}) was lost: {}", reason.told(*expiry))]
#[non_exhaustive]
pub struct LeaseLost {
    /// The lock.
    pub lock: LockName,
    /// The fence of the lost lease.
    pub fence: Fence,
    /// Why it was lost.
    pub reason: LossReason,
    /// Why it expired, if that is known.
    pub(crate) expiry: Option<Expiry>,
}

impl LeaseLost {
    pub(crate) fn new(lease: &HeldLease, reason: LossReason) -> Self {
        let (lock, fence, expiry) = (lease.name().clone(), lease.fence(), lease.expiry());
        Self { lock, fence, reason, expiry }
    }

    /// What the end of a lease is to those who still need it.
    pub(crate) fn at_end(lease: &HeldLease, end: LeaseEnd) -> Self {
        Self::new(
            lease,
            match end {
                LeaseEnd::Lost(reason) => reason,
                LeaseEnd::Released => LossReason::Gone,
            },
        )
    }
}

/// Why a lease was not re-entered.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReenterError {
    /// The lease was lost; re-entry never grants a new one.
    #[error("{0}; stop, and acquire anew")]
    Lost(LeaseLost),
    /// The lease has too many nested holds.
    #[error("lock {lock:?}: re-entered too often; a guard is never dropped")]
    TooManyHolds {
        /// The lock.
        lock: LockName,
    },
    /// The store refused in a way that trying again does not mend.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a release did not end a lease as it should. What was done under the lease is done.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The lease had been lost before: what was done under it may have met another holder.
    #[error("{0}; it was lost before its release: rely on the fence check of your storage")]
    Lost(LeaseLost),
    /// The lease was held to the end, but the server has not confirmed its release. The runtime
    /// repeats it, unless the server refuses for good. Once the server hears, the lock is free, or
    /// stays closed for its [`min_hold`](crate::Acquire::min_hold) or for the window of a
    /// [`Once`](crate::Once); if it never does, the lock is free when the ttl ends.
    #[error(
        "lock {lock:?}: the server has not confirmed the release of fence {fence}; {}: {error}",
        what_follows(*stays_closed, error.kind().is_transient())
    )]
    Unconfirmed {
        /// The lock.
        lock: LockName,
        /// The fence of the lease.
        fence: Fence,
        /// Whether the lock is to stay closed for a while.
        stays_closed: bool,
        /// Why the server did not confirm it.
        error: StoreError,
    },
}

fn what_follows(stays_closed: bool, is_repeated: bool) -> &'static str {
    match (stays_closed, is_repeated) {
        (true, true) => {
            "the lock stays closed as it should once the server has the release, and otherwise opens when the ttl ends: what was \
         done is done, and after a once, let the storage refuse a second write"
        }
        (true, false) => {
            "the server will not keep the lock closed, and it opens when the ttl ends: what was done is done, and after a \
         once, let the storage refuse a second write"
        }
        (false, true) => {
            "nothing needs to be done: the lock is free once the server has the release, or when the ttl ends"
        }
        (false, false) => "the lock is free when the ttl ends",
    }
}
