use leasehold_core::{FenceToken, LockName, StoreError};

use super::{LeaseLost, ReleaseError};

/// Why a run that succeeded could not close the lock: the work is done, and may be done again.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SucceedError {
    /// The lease had been lost before: another run may have begun meanwhile.
    #[error(
        "{0}; the work is done, but another run may have begun: rely on the fence check of your storage"
    )]
    Lost(LeaseLost),
    /// The server has not answered in time. The runtime repeats the command: the lock is closed for
    /// the window; if no command reaches the server, it opens with the ttl.
    #[error(
        "{lock:?}: the work is done, but the server did not confirm it in time (fence {fence}); another run may begin when the ttl ends: answer as done, and let the storage refuse a second write: {error}"
    )]
    Unconfirmed {
        /// The name of the run.
        lock: LockName,
        /// The fence of the lease.
        fence: FenceToken,
        /// Why the server did not confirm it.
        error: StoreError,
    },
}

impl From<ReleaseError> for SucceedError {
    fn from(error: ReleaseError) -> Self {
        match error {
            ReleaseError::Lost(lost) => Self::Lost(lost),
            ReleaseError::Unconfirmed { lock, fence, error, .. } => {
                Self::Unconfirmed { lock, fence, error }
            }
        }
    }
}
