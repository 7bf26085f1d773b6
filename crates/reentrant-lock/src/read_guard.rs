use std::{fmt, time::Duration};

use leasehold_core::{AcquisitionId, Fence, LockName, lease::LeaseState};
use leasehold_watchdog::Lost;
use tokio_util::sync::CancellationToken;

use crate::{
    error::ReleaseError,
    guard::{AcquiredGuard, Guard, Released},
    lease::Lease,
    owner::{Owner, Reading},
};

/// A lock that is read. Dropping it gives its part back; [`release`](Self::release) also tells how that went.
#[must_use = "a guard that is dropped releases the lock at once"]
pub struct ReadGuard {
    guard: Guard,
    // Dropped behind the guard.
    _by: Option<Reading>,
}

impl ReadGuard {
    /// A view of the lease, for others to watch.
    pub fn lease(&self) -> ReadLease {
        ReadLease(self.guard.lease())
    }

    /// Gives its part back. The last reader of this process waits for the answer of the server.
    ///
    /// # Errors
    ///
    /// [`ReleaseError`]: the lease was lost before, or the server has not confirmed its end.
    ///
    /// # Cancel safety
    ///
    /// The part is given back at the first poll. If the future is dropped, the runtime goes on sending.
    pub async fn release(self) -> Result<Released, ReleaseError> {
        self.guard.release().await
    }

    /// Returns the name of the lock.
    pub fn name(&self) -> &LockName {
        self.guard.name()
    }

    /// Returns the fence, which all who read at this time share. It is above that of each writer before, and below
    /// that of each later one.
    pub fn fence(&self) -> Fence {
        self.guard.fence()
    }

    /// Whether the lease is believed to be held now.
    pub fn is_held(&self) -> bool {
        self.guard.is_held()
    }

    /// A future that resolves when the lease is over; it borrows nothing.
    pub fn lost(&self) -> Lost {
        self.guard.lost()
    }
}

impl AcquiredGuard for ReadGuard {
    type Lease = ReadLease;

    fn of(guard: Guard, by: Option<&Owner>) -> Self {
        let by = by.map(|owner| Reading::new(owner, guard.name()));
        Self { guard, _by: by }
    }

    fn view(&self) -> ReadLease {
        self.lease()
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }

    fn into_guard(self) -> Guard {
        self.guard
    }
}

impl fmt::Debug for ReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadGuard").field(&self.guard).finish()
    }
}

/// A view of a lease to read, which the readers of a process share. It does not keep the lock.
#[derive(Debug, Clone)]
pub struct ReadLease(pub(crate) Lease);

impl ReadLease {
    /// Returns the name of the lock.
    pub fn name(&self) -> &LockName {
        self.0.name()
    }

    /// Returns the id of the lease, which the readers of this process share.
    pub fn id(&self) -> AcquisitionId {
        self.0.id()
    }

    /// Returns the fence, see [`ReadGuard::fence`].
    pub fn fence(&self) -> Fence {
        self.0.fence()
    }

    /// Whether the lease is believed to be held now.
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// Returns what may be believed of the lease now.
    pub fn state(&self) -> LeaseState {
        self.0.state()
    }

    /// Returns for how long the lease may be believed without a renewal; zero when it is over.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// A future that resolves when the lease is over; it borrows nothing.
    pub fn lost(&self) -> Lost {
        self.0.lost()
    }

    /// A token that is cancelled when the lease is over.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.cancellation()
    }
}
