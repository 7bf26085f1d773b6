use std::{fmt, time::Duration};

use leasehold_core::{AcquisitionId, FenceToken, LockName, StoreError};

/// A wait that ended before the lock was free.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WaitTimeout {
    /// The lock.
    pub lock: LockName,
    /// How long the call waited.
    pub waited: Duration,
    /// Who holds the lock, if that could be found out.
    pub holder: Option<HolderInfo>,
    /// The failure that the last attempt met, if it was not simply that the lock was taken.
    pub last_error: Option<StoreError>,
}

impl fmt::Display for WaitTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lock {:?}: not free within {:?}", self.lock, self.waited)?;
        if let Some(holder) = &self.holder {
            write!(f, "; {holder}")?;
        }
        if let Some(error) = &self.last_error {
            write!(f, "; the last attempt failed: {error}")?;
        }
        f.write_str("; wait longer, or find out why the holder keeps it")
    }
}

impl std::error::Error for WaitTimeout {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.last_error.as_ref().map(|error| error as _)
    }
}

/// Who holds a lock, as seen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HolderInfo {
    /// The label of the holder's runtime.
    pub label: String,
    /// The holder's lease.
    pub lease: AcquisitionId,
    /// Its fence.
    pub fence: FenceToken,
    /// How long it has been held.
    pub held_for: Duration,
    /// Whether the holder is a lease of this very runtime.
    pub this_runtime: bool,
}

impl fmt::Display for HolderInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { label, lease, fence, held_for, this_runtime } = self;
        write!(f, "held for {held_for:?} by {label} (lease {lease}, fence {fence}")?;
        f.write_str(if *this_runtime { ", this very runtime)" } else { ")" })
    }
}
