use std::{
    future::Future,
    ops::Index,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use leasehold_core::{LockName, Stamp};
use leasehold_watchdog::Lost;

use crate::{error::LeaseLost, lease::Lease};

/// A view of several leases that were taken together: it neither prolongs nor ends them.
///
/// Each is there by the name of its lock, which panics where [`get`](Self::get) returns `None`:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::LockRuntime;
///
/// let locks = LockRuntime::embedded()?;
/// let both = locks.all(["accounts/3", "accounts/7"])?.acquire().await?;
/// println!("write to account 7 with {}", both["accounts/7"].stamp());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AllLeases(pub(super) Arc<[Lease]>);

impl AllLeases {
    /// Returns the leases, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Lease> {
        self.0.iter()
    }

    /// Returns the lease of a name; `None` if that is not one of the locks.
    pub fn get(&self, name: impl AsRef<str>) -> Option<&Lease> {
        let name = name.as_ref();
        self.iter().find(|lease| lease.name().as_str() == name)
    }

    /// Returns each lock with its stamp: hand it to the storage with every write that the lock guards.
    pub fn stamps(&self) -> impl Iterator<Item = (&LockName, Stamp)> {
        self.iter().map(|lease| (lease.name(), lease.stamp()))
    }

    /// Returns whether all leases are held; looks at the clock first.
    pub fn are_held(&self) -> bool {
        self.iter().all(Lease::is_held)
    }

    /// Returns for how long all leases may be believed without another renewal; zero when one is over.
    pub fn remaining(&self) -> Duration {
        self.iter().map(Lease::remaining).min().unwrap_or_default()
    }

    /// Returns a future that borrows nothing, and resolves when the first of the leases is over, to
    /// which one, and why. After a release it resolves with
    /// [`LossReason::Gone`](leasehold_core::lease::LossReason::Gone).
    pub fn lost(&self) -> impl Future<Output = LeaseLost> + Send + Unpin + use<> {
        AllLost(self.iter().map(|lease| (lease.clone(), lease.lost())).collect())
    }

    /// The first lease that is lost already.
    pub(super) fn loss(&self) -> Option<LeaseLost> {
        self.iter().find_map(Lease::loss)
    }
}

/// The lease of a name.
///
/// # Panics
///
/// Panics if that is not one of the locks; [`AllLeases::get`] does not.
impl<N: AsRef<str>> Index<N> for AllLeases {
    type Output = Lease;

    fn index(&self, name: N) -> &Lease {
        let name = name.as_ref();
        self.get(name).unwrap_or_else(|| panic!("{name:?} is not one of the locks"))
    }
}

/// Resolves when the first of several leases is over.
pub(super) struct AllLost(Vec<(Lease, Lost)>);

impl AllLost {
    pub(super) fn empty() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, lease: Lease) {
        let lost = lease.lost();
        self.0.push((lease, lost));
    }
}

impl Future for AllLost {
    type Output = LeaseLost;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        for (lease, lost) in &mut self.0 {
            if let Poll::Ready(end) = Pin::new(lost).poll(cx) {
                return Poll::Ready(LeaseLost::at_end(&lease.0, end));
            }
        }
        Poll::Pending
    }
}
