use leasehold_core::{LockName, StoreError};

use super::LeaseLost;

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
