use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::{Command, Listener, LockStore, Reply, StoreError, StoreErrorKind, StoreFuture};
use crate::{
    clock::{Clock, Instant, within},
    types::{LockName, RuntimeId},
};

/// Any store: each of its commands ends by its deadline, also if the store keeps silent.
///
/// The stores that `connect` makes see to that themselves (`tests/stores/mute.rs`).
// ADR 0048
#[derive(Debug)]
pub struct BoundedStore {
    store: Arc<dyn LockStore>,
    clock: Arc<dyn Clock>,
}

impl BoundedStore {
    /// Bounds the commands of `store`, with the timers of `clock`.
    pub fn new(store: Arc<dyn LockStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }
}

impl LockStore for BoundedStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        let sending = self.store.send(command, deadline);
        Box::pin(async move {
            within(&*self.clock, deadline, sending).await.unwrap_or_else(|| {
                Err(StoreError::new(
                    StoreErrorKind::Indeterminate,
                    "the store has not answered in time",
                    "check what the store runs on; report a store that never answers to those who made it",
                ))
            })
        })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.store.listen(runtime, listener);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.store.shard(name)
    }

    fn ends_with_process(&self) -> bool {
        self.store.ends_with_process()
    }

    fn longest_ttl(&self) -> Duration {
        self.store.longest_ttl()
    }
}
