use std::{fmt, future::Future, ops::Deref};

use futures_util::future::join_all;

use super::leases::AllLeases;
use crate::{
    error::ReleaseError,
    guard::{Guard, Released},
};

/// One hold of each of several leases; it dereferences to [`AllLeases`], which gives them by name.
///
/// Releasing it ends all of them, and so does dropping it, as for a [`Guard`].
#[must_use = "a guard that is dropped releases the locks at once"]
pub struct AllGuard {
    pub(super) leases: AllLeases,
    guards: Vec<Guard>,
}

impl AllGuard {
    pub(super) fn new(guards: Vec<Guard>) -> Self {
        Self { leases: AllLeases(guards.iter().map(Guard::lease).collect()), guards }
    }

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
