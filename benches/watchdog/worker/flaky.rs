use std::sync::{Arc, Weak};

use leasehold::{
    LockName, RuntimeId, RuntimeLabel,
    error::{StoreError, StoreErrorKind},
    store::{Inspection, LockStore},
    time::{Entropy, Instant, SystemEntropy},
};
use leasehold_core::store::{
    Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Listener, Release,
    ReleaseAnswer, RenewAnswer, Renewal, Scan, ScanPage, StoreFuture, Waiter, Withdraw,
    WithdrawAnswer,
};

/// A store some of whose calls fail, at random: half of them before they are sent, half after they
/// were executed.
#[derive(Debug)]
pub(super) struct Flaky {
    inner: Arc<dyn LockStore>,
    entropy: SystemEntropy,
    fails: f64,
}

impl Flaky {
    /// Lets this share of the calls fail.
    pub(super) fn new(inner: Arc<dyn LockStore>, fails: f64) -> Self {
        Self { inner, entropy: SystemEntropy, fails }
    }

    fn strike<'a, T: Send + 'a>(&self, call: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let dice = self.entropy.fraction();
        if dice >= self.fails {
            return call;
        }
        let is_sent = dice < self.fails / 2.0;
        Box::pin(async move {
            if !is_sent {
                return Err(failure(StoreErrorKind::Definite));
            }
            call.await?;
            Err(failure(StoreErrorKind::Indeterminate))
        })
    }
}

fn failure(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "the benchmark lets this call fail", "try again")
}

impl LockStore for Flaky {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        self.strike(self.inner.acquire(command))
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        self.strike(self.inner.heartbeat(batch, label, deadline))
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.inner.listen(runtime, listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        self.strike(self.inner.hold(command))
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        self.strike(self.inner.release(command))
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<RenewAnswer, StoreError>>> {
        self.strike(self.inner.renew(batch, deadline))
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        self.strike(self.inner.withdraw(command))
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        self.strike(self.inner.inspect(name, deadline))
    }

    fn scan<'a>(&'a self, command: Scan<'a>) -> StoreFuture<'a, ScanPage> {
        self.strike(self.inner.scan(command))
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        self.strike(self.inner.force_release(command))
    }

    fn shard(&self, name: &LockName) -> usize {
        self.inner.shard(name)
    }
}
