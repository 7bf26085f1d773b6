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
        let (lock, waited) = (&self.lock, whole_millis(self.waited));
        if let Some(error) = &self.last_error {
            return write!(f, "could not ask for lock {lock:?} within {waited:?}: {error}");
        }
        write!(f, "lock {lock:?}: not free within {waited:?}")?;
        let Some(holder) = &self.holder else {
            return f.write_str("; wait longer, or find out who keeps it");
        };
        write!(f, "; {holder}")?;
        f.write_str(if holder.this_runtime {
            "; nested code re-enters only with the same owner: pass it on, or use owner.scope()"
        } else {
            "; wait longer, or find out why the holder keeps it"
        })
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
        let Self { label, lease, fence, this_runtime, .. } = self;
        let held_for = whole_millis(self.held_for);
        write!(f, "held for {held_for:?} by {label} (lease {lease}, fence {fence}")?;
        f.write_str(if *this_runtime { ", this very runtime)" } else { ")" })
    }
}

/// Fractions of a millisecond tell a reader nothing.
fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
