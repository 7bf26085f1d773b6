use std::{future::Future, sync::Arc, time::Duration};

use leasehold_core::{AcquisitionId, Fence, LockName, Stamp, StoreError, lease::LeaseState};
use leasehold_watchdog::{HeldLease, Lost};
use tokio::select;
use tokio_util::sync::CancellationToken;

use crate::error::LeaseLost;

/// A view of a lease: it can be watched and shown to others, but neither prolongs nor ends it.
///
/// A [`Guard`](crate::Guard) and a [`OnceGuard`](crate::OnceGuard) dereference to the lease that they
/// hold.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::LockRuntime;
///
/// let locks = LockRuntime::embedded()?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// let lease = guard.lease();
/// let watch = tokio::spawn(async move { lease.lost().await }); // does not hold the lock
/// guard.release().await?;
/// println!("{}", watch.await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Lease(pub(crate) Arc<HeldLease>);

impl Lease {
    /// Returns the name of the lock.
    pub fn name(&self) -> &LockName {
        self.0.name()
    }

    /// Returns the id of the lease, which is never used for another.
    pub fn id(&self) -> AcquisitionId {
        self.0.id()
    }

    /// Returns the fence token: hand it to the storage with every write.
    pub fn fence(&self) -> Fence {
        self.0.fence()
    }

    /// Returns what a storage's gate asks for: the fence, and the id of the lease.
    #[doc(alias = "token")]
    pub fn stamp(&self) -> Stamp {
        Stamp::new(self.fence(), self.id())
    }

    /// Returns whether the lease is held; looks at the clock first.
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// Returns what may be believed of the lease; looks at the clock first.
    pub fn state(&self) -> LeaseState {
        self.0.state()
    }

    /// Returns for how long the lease may be believed without another renewal; zero when it is over.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Returns why the last renewal failed, if none was confirmed since: where the lease expires, this is why.
    pub fn renewal_error(&self) -> Option<StoreError> {
        self.0.renewal_error()
    }

    /// Returns a future that borrows nothing, and resolves to how the lease ended when it is over.
    pub fn lost(&self) -> Lost {
        self.0.lost()
    }

    /// Returns a token that is cancelled when the lease is over.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.cancellation()
    }
}

impl Lease {
    /// How the lease was lost, if it was.
    pub(crate) fn loss(&self) -> Option<LeaseLost> {
        match self.state() {
            LeaseState::Lost(reason) => Some(LeaseLost::new(&self.0, reason)),
            LeaseState::Held { .. } | LeaseState::Released => None,
        }
    }

    /// Waits until the lease is over, which is a loss to those who still need it.
    pub(crate) async fn until_lost(&self) -> LeaseLost {
        LeaseLost::at_end(&self.0, self.lost().await)
    }
}

/// For the storage's gate, as [`Lease::stamp`] is.
impl From<Lease> for Stamp {
    fn from(lease: Lease) -> Self {
        lease.stamp()
    }
}

/// For the storage's gate, as [`Lease::stamp`] is.
impl From<&Lease> for Stamp {
    fn from(lease: &Lease) -> Self {
        lease.stamp()
    }
}

/// Polls a body until it has ended with a value, or leases are lost under it.
pub(crate) async fn run_while_held<T, E>(
    until_lost: impl Future<Output = LeaseLost>,
    loss: impl Fn() -> Option<LeaseLost>,
    body: impl Future<Output = Result<T, E>>,
) -> Result<Result<T, E>, LeaseLost> {
    select! {
        biased;
        loss = until_lost => Err(loss),
        ended = body => match loss() {
            // The last poll may have taken longer than the leases were believed.
            Some(loss) if ended.is_ok() => Err(loss),
            _ => Ok(ended),
        },
    }
}
