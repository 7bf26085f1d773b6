use std::{
    fmt,
    future::Future,
    ops::{Deref, Index},
    sync::Arc,
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{join_all, select_all},
};
use leasehold_core::{LockName, Stamp};

use crate::{
    error::{LeaseLost, ReleaseError},
    guard::{Guard, Released},
    lease::Lease,
};

/// One hold of each of several leases; it dereferences to [`AllLeases`], which gives them by name.
///
/// Releasing it ends all of them, and so does dropping it, as for a [`Guard`].
#[must_use = "a guard that is dropped releases the locks at once"]
pub struct AllGuard {
    pub(super) leases: AllLeases,
    pub(super) guards: Vec<Guard>,
}

impl AllGuard {
    /// Returns a view of the leases for others to watch.
    pub fn leases(&self) -> AllLeases {
        self.leases.clone()
    }

    /// Returns the guards of the single locks, in the order of their names; each is released by
    /// itself from now on.
    pub fn into_guards(self) -> Vec<Guard> {
        self.guards
    }

    /// Gives all holds back, and says how each ended, in the order of the names.
    ///
    /// All of them are given back at once, each as by [`Guard::release`].
    ///
    /// # Errors
    ///
    /// The first error in the order of the names, a loss before any other:
    ///
    /// - [`ReleaseError::Lost`] when a lease had been lost before.
    /// - [`ReleaseError::Unconfirmed`] when the server has not confirmed a release in time.
    ///
    /// The other holds are given back all the same.
    ///
    /// # Cancel safety
    ///
    /// The holds are off in memory from the first poll on; dropping the future, polled or not,
    /// leaves the rest to the runtime.
    pub fn release(
        self,
    ) -> impl Future<Output = Result<Vec<Released>, ReleaseError>> + Send + use<> {
        let all = join_all(self.guards.into_iter().map(Guard::release));
        async move {
            let ended = all.await;
            let is_lost = |ended: &&Result<_, _>| matches!(ended, Err(ReleaseError::Lost(_)));
            match ended.iter().find(is_lost) {
                Some(Err(lost)) => Err(lost.clone()),
                _ => ended.into_iter().collect(),
            }
        }
    }
}

impl Deref for AllGuard {
    type Target = AllLeases;

    fn deref(&self) -> &AllLeases {
        &self.leases
    }
}

impl fmt::Debug for AllGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllGuard").field("guards", &self.guards).finish_non_exhaustive()
    }
}

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

    /// Returns a future that borrows nothing, and resolves once, when the first of the leases is over, to
    /// which one, and why. After a release it resolves with
    /// [`LossReason::Gone`](leasehold_core::lease::LossReason::Gone).
    pub fn lost(&self) -> impl Future<Output = LeaseLost> + Send + Unpin + use<> {
        let lost = self
            .iter()
            .cloned()
            .map(|lease| lease.lost().map(move |end| LeaseLost::at_end(&lease.0, end)));
        // A loop around `select!` may poll it on.
        select_all(lost).map(|(first, ..)| first).fuse()
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
