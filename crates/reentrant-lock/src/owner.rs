use std::{
    future::Future,
    sync::{Arc, Weak},
    thread::{self, ThreadId},
};

use leasehold_core::{LockName, Mutex, NameMap, RuntimeId, lease::Holds};
use leasehold_watchdog::HeldLease;
use tokio::{
    sync::{Notify, futures::Notified},
    task,
};

use crate::error::SelfWait;

/// An identity within this process that may re-enter the locks it holds.
///
/// Every acquire has a fresh owner of its own unless one is given: two tasks never share a lock
/// by accident. Clones are the same owner, in whatever thread or task.
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
    runtime_id: RuntimeId,
    leases: Mutex<NameMap<Weak<SharedLease>>>,
    /// The locks for which its calls wait.
    waits: Mutex<Vec<LockName>>,
    /// What its tasks read; a name once for each guard.
    reads: Mutex<Vec<LockName>>,
    gained: Notify,
}

/// An owner that may be gone.
#[derive(Debug)]
pub(crate) struct WeakOwner(Weak<Shared>);

impl WeakOwner {
    pub(crate) fn upgrade(&self) -> Option<Owner> {
        self.0.upgrade().map(Owner)
    }
}

tokio::task_local! {
    static SCOPE: Owner;
}

impl Owner {
    /// A new owner, who may re-enter what it holds of a runtime.
    pub(crate) fn new(runtime_id: RuntimeId) -> Self {
        let (leases, waits, reads) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { runtime_id, leases, waits, reads, gained: Notify::new() }))
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

    pub(crate) fn of_scope(runtime_id: RuntimeId) -> Option<Self> {
        SCOPE.try_with(Clone::clone).ok().filter(|owner| owner.belongs_to(runtime_id))
    }

    pub(crate) fn belongs_to(&self, runtime_id: RuntimeId) -> bool {
        self.0.runtime_id == runtime_id
    }

    /// The lease of a name that this owner has guards of.
    pub(crate) fn held(&self, name: &LockName) -> Option<Arc<SharedLease>> {
        self.0.leases.lock().get(name).and_then(Weak::upgrade)
    }

    /// The owner got a lease; its other waiters re-enter it.
    pub(crate) fn gain(&self, held: &Arc<SharedLease>) {
        let name = held.lease.name();
        self.0.leases.lock().insert(name.clone(), Arc::downgrade(held));
        self.0.gained.notify_waiters();
    }

    /// A lease of the owner is over.
    pub(crate) fn forget(&self, lease: &HeldLease) {
        let mut leases = self.0.leases.lock();
        // A newer lease of the same name may have taken its place.
        let is_this = |held: &Weak<SharedLease>| {
            held.upgrade().is_none_or(|held| held.lease.id() == lease.id())
        };
        if leases.get(lease.name()).is_some_and(is_this) {
            leases.remove(lease.name());
        }
    }

    pub(crate) fn waits_for(&self, name: &LockName) {
        self.0.waits.lock().push(name.clone());
    }

    /// One of its calls does not wait any more.
    pub(crate) fn waits_no_more(&self, name: &LockName) {
        let mut waits = self.0.waits.lock();
        if let Some(at) = waits.iter().position(|awaited| awaited == name) {
            waits.swap_remove(at);
        }
    }

    /// Whether one of its guards reads a lock.
    pub(crate) fn reads(&self, name: &LockName) -> bool {
        self.0.reads.lock().contains(name)
    }

    /// The locks for which its calls wait, each as often as it is waited for.
    pub(crate) fn awaited(&self) -> Vec<LockName> {
        self.0.waits.lock().clone()
    }

    pub(crate) fn downgrade(&self) -> WeakOwner {
        WeakOwner(Arc::downgrade(&self.0))
    }

    /// A number that no other living owner has.
    pub(crate) fn key(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Resolves when the owner gets a lease.
    pub(crate) fn gained(&self) -> Notified<'_> {
        self.0.gained.notified()
    }
}

/// Who asks for a lock: in which task, and with which owner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    task: CallingTask,
    owned: Owned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallingTask {
    Spawned(task::Id),
    /// What `block_on` runs has no id, and stays on its thread.
    Blocks(ThreadId),
}

/// Where the owner of a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owned {
    /// It is a fresh one, which nothing else can have.
    Fresh,
    Given,
    /// It is the owner of the scope that the call is in.
    Scoped,
}

impl Caller {
    pub(crate) fn here(owned: Owned) -> Self {
        let blocks = || CallingTask::Blocks(thread::current().id());
        Self { task: task::try_id().map_or_else(blocks, CallingTask::Spawned), owned }
    }

    /// How this call may wait for itself, if `holder` acquired the lock for which it waits.
    ///
    /// Suspicious: the very task that acquired it waits, or a call outside of every scope waits for
    /// one inside. Other tasks of a process contend for a lock in the usual way.
    pub(crate) fn waits_for_itself(self, holder: Self) -> Option<SelfWait> {
        let is_same_task = self.task == holder.task;
        match (self.owned, holder.owned) {
            (Owned::Fresh, _) if is_same_task => Some(SelfWait::WithoutOwner),
            _ if is_same_task => Some(SelfWait::OtherOwner),
            (Owned::Fresh, Owned::Scoped) => Some(SelfWait::OutsideScope),
            _ => None,
        }
    }
}

/// A lease with the count of its holds: what its guards share.
#[derive(Debug)]
pub(crate) struct SharedLease {
    pub(crate) lease: Arc<HeldLease>,
    pub(crate) owner: Option<Owner>,
    pub(crate) holds: Mutex<Holds>,
}

/// Who holds the leases that the readers of a runtime share: one owner for each name that is read.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    owners: NameMap<WeakOwner>,
    /// From how many names on those are forgotten that nobody reads any more.
    enough: usize,
}

impl Readers {
    pub(crate) fn of(&mut self, name: &LockName, runtime_id: RuntimeId) -> Owner {
        if let Some(owner) = self.owners.get(name).and_then(WeakOwner::upgrade) {
            return owner;
        }
        if self.owners.len() >= self.enough {
            self.owners.retain(|_, owner| owner.0.strong_count() > 0);
            self.enough = 64 + 2 * self.owners.len();
        }
        let owner = Owner::new(runtime_id);
        self.owners.insert(name.clone(), owner.downgrade());
        owner
    }
}

/// A guard of an owner that reads a lock, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reading {
    owner: Owner,
    name: LockName,
}

impl Reading {
    pub(crate) fn new(owner: &Owner, name: &LockName) -> Self {
        owner.0.reads.lock().push(name.clone());
        Self { owner: owner.clone(), name: name.clone() }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut reads = self.owner.0.reads.lock();
        if let Some(at) = reads.iter().position(|name| *name == self.name) {
            reads.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_call_that_may_wait_for_itself_is_suspicious() {
        let caller = |owned| async move { Caller::here(owned) };
        let here = |owned| Caller::here(owned);
        let [fresh, scoped, given] = [Owned::Fresh, Owned::Scoped, Owned::Given];
        assert_eq!(here(fresh).waits_for_itself(here(fresh)), Some(SelfWait::WithoutOwner));
        assert_eq!(here(fresh).waits_for_itself(here(scoped)), Some(SelfWait::WithoutOwner));
        assert_eq!(here(scoped).waits_for_itself(here(fresh)), Some(SelfWait::OtherOwner));
        assert_eq!(here(given).waits_for_itself(here(given)), Some(SelfWait::OtherOwner));

        for (owned, suspicion) in
            [(fresh, Some(SelfWait::OutsideScope)), (scoped, None), (given, None)]
        {
            let other = tokio::spawn(caller(owned)).await.expect("a task");
            assert_eq!(other.waits_for_itself(here(scoped)), suspicion, "{owned:?}");
            // Tasks that contend for a lock without any scope are no news.
            assert_eq!(other.waits_for_itself(here(fresh)), None, "{owned:?}");
            assert_eq!(other.waits_for_itself(here(given)), None, "{owned:?}");
        }
    }
}
