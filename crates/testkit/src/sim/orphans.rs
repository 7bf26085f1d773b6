use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, LockName, LockStore, RuntimeId, RuntimeLabel,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Listener, Push, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture, Waiter,
        Withdraw, WithdrawAnswer,
    },
};

/// A mutant of the rules, as a store: what a push granted is not withdrawn by its id, but released by
/// the fence that the push told. A newer grant of the same id then stands.
#[derive(Debug)]
pub struct OrphansByFence {
    store: Arc<dyn LockStore>,
    relay: Mutex<Option<Arc<Relay>>>,
}

/// Passes pushes on to the runtime, and remembers their fences.
#[derive(Debug)]
struct Relay {
    runtime: Weak<dyn Listener>,
    fences: Mutex<BTreeMap<AcquisitionId, FenceToken>>,
}

impl OrphansByFence {
    /// The mutant over a store.
    pub fn new(store: Arc<dyn LockStore>) -> Self {
        Self { store, relay: Mutex::default() }
    }

    fn relay(&self) -> Option<Arc<Relay>> {
        self.relay.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Relay {
    fn fences(&self) -> MutexGuard<'_, BTreeMap<AcquisitionId, FenceToken>> {
        self.fences.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Relay {
    fn on_push(&self, push: Push) {
        if let Push::Granted { id, granted, .. } = &push {
            self.fences().insert(*id, granted.first);
        }
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.on_push(push);
        }
    }
}

impl LockStore for OrphansByFence {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        self.store.acquire(command)
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, leasehold_core::StoreError>>> {
        self.store.heartbeat(batch, label, deadline)
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        let relay = Arc::new(Relay { runtime: listener, fences: Mutex::default() });
        let listener: Arc<dyn Listener> = Arc::clone(&relay) as _;
        self.store.listen(runtime, Arc::downgrade(&listener));
        *self.relay.lock().unwrap_or_else(PoisonError::into_inner) = Some(relay);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        self.store.hold(command)
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        self.store.release(command)
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>> {
        self.store.renew(batch, deadline)
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        let Withdraw { name, id, deadline } = command;
        let Some(fence) = self.relay().and_then(|relay| relay.fences().get(&id).copied()) else {
            return self.store.withdraw(command);
        };
        let release = Release { name, id, fence, keep: None, next: None, deadline };
        Box::pin(async move {
            let answer = self.store.release(release).await?;
            Ok(WithdrawAnswer { ended_grant: answer != ReleaseAnswer::Gone })
        })
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        self.store.inspect(name, deadline)
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        self.store.force_release(command)
    }
}
