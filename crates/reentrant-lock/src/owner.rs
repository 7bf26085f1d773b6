use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use leasehold_core::{LockName, RuntimeId};
use leasehold_watchdog::HeldLease;
use tokio::sync::Notify;

use crate::held::Held;

/// An identity within this process that may re-enter the locks it holds.
///
/// Every acquire has a fresh owner of its own unless one is given: two tasks never share a lock
/// by accident. Clones are the same owner. It is not a thread and not a task, so it travels
/// wherever it is passed.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::{LockRuntime, error::AcquireError};
///
/// let locks = LockRuntime::embedded()?;
/// let lock = locks.lock("orders/42")?;
/// let owner = locks.owner();
/// let nested = owner.scope(async {
///     let outer = lock.acquire().await?;
///     let inner = lock.acquire().await?; // the same lease: no owner waits for itself
///     Ok::<_, AcquireError>(outer.fence() == inner.fence())
/// });
/// assert!(nested.await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Owner(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    runtime: RuntimeId,
    leases: Mutex<HashMap<LockName, Weak<Held>>>,
    gained: Notify,
}

tokio::task_local! {
    static SCOPE: Owner;
}

impl Owner {
    pub(crate) fn new(runtime: RuntimeId) -> Self {
        Self(Arc::new(Shared { runtime, leases: Mutex::default(), gained: Notify::new() }))
    }

    /// Runs a future in which every acquire without an owner of its own uses this one.
    ///
    /// Branches of a `join!` in it share the owner; spawned tasks do not inherit it.
    ///
    /// # Cancel safety
    ///
    /// As that of the future itself.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        SCOPE.scope(self.clone(), future).await
    }

    /// The owner of the scope that runs at present, if it belongs to `runtime`.
    pub(crate) fn of_scope(runtime: RuntimeId) -> Option<Self> {
        SCOPE.try_with(Clone::clone).ok().filter(|owner| owner.0.runtime == runtime)
    }

    pub(crate) fn belongs_to(&self, runtime: RuntimeId) -> bool {
        self.0.runtime == runtime
    }

    /// The lease of a name that this owner has guards of.
    pub(crate) fn held(&self, name: &LockName) -> Option<Arc<Held>> {
        self.leases().get(name).and_then(Weak::upgrade)
    }

    /// The owner got a lease; its other waiters re-enter it.
    pub(crate) fn gain(&self, held: &Arc<Held>) {
        self.leases().insert(held.lease.name().clone(), Arc::downgrade(held));
        self.0.gained.notify_waiters();
    }

    /// A lease of the owner is over.
    pub(crate) fn forget(&self, lease: &HeldLease) {
        let mut leases = self.leases();
        // A newer lease of the same name may have taken its place.
        let is_this =
            |held: &Weak<Held>| held.upgrade().is_none_or(|held| held.lease.id() == lease.id());
        if leases.get(lease.name()).is_some_and(is_this) {
            leases.remove(lease.name());
        }
    }

    /// Resolves when the owner gets its next lease.
    pub(crate) fn gained(&self) -> impl Future<Output = ()> {
        self.0.gained.notified()
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<LockName, Weak<Held>>> {
        self.0.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
