use std::sync::{Arc, Weak};

use leasehold::{
    LockName, RuntimeId,
    error::{StoreError, StoreErrorKind},
    time::Instant,
};
use leasehold_core::{
    Entropy, LockStore, SystemEntropy,
    store::{Command, Listener, Reply, StoreFuture},
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
}

fn failure(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "the benchmark lets this call fail", "try again")
}

impl LockStore for Flaky {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        let dice = self.entropy.fraction();
        if dice >= self.fails {
            return self.inner.send(command, deadline);
        }
        let is_sent = dice < self.fails / 2.0;
        Box::pin(async move {
            if !is_sent {
                return Err(failure(StoreErrorKind::Definite));
            }
            self.inner.send(command, deadline).await?;
            Err(failure(StoreErrorKind::Indeterminate))
        })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.inner.listen(runtime, listener);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.inner.shard(name)
    }
}
