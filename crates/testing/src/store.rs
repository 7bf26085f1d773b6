use std::sync::{Arc, Mutex, PoisonError, Weak};

use leasehold_core::{
    Clock, FenceSettings, Instant, LockName, LockStore, MemoryStore, RuntimeId, StoreError,
    StoreErrorKind,
    store::{
        Ask, Command, ForceRelease, ForceReleaseAnswer, Inspection, Listener, Reply, StoreFuture,
    },
};

/// A store in memory that fails when a test says so, and takes leases away from their holders.
///
/// It follows the same rules as Redis. Several runtimes may share one store, as several processes
/// share one server. Clones are the same store.
#[derive(Debug, Clone)]
pub struct TestStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Arc<dyn Clock>,
    memory: MemoryStore,
    failure: Mutex<Option<Failure>>,
}

/// How a [`TestStore`] fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The server answers every command with an error, and runs none.
    Refuses,
    /// The server cannot be reached: no command is run, and none is answered.
    Unreachable,
    /// The server runs every command, and all answers are lost.
    AnswersLost,
}

impl TestStore {
    /// An empty store that works.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let memory = MemoryStore::new(Arc::clone(&clock), FenceSettings::default());
        Self(Arc::new(Inner { clock, memory, failure: Mutex::default() }))
    }

    /// Lets every command fail that is sent from now on, until [`recover`](Self::recover).
    pub fn fail(&self, failure: Failure) {
        self.set(Some(failure));
    }

    /// Lets commands succeed again.
    pub fn recover(&self) {
        self.set(None);
    }

    /// Forgets all leases and fences, as a server does that loses its data.
    ///
    /// Holders notice it at their next renewal.
    pub fn lose_data(&self) {
        self.0.memory.clear();
    }

    /// Ends the lease of a lock, as an operator does with a forced release; whether there was one.
    ///
    /// Its holder is told at once, and the next waiter gets the lock. It works while the store
    /// fails, too.
    ///
    /// # Cancel safety
    ///
    /// The future is ready when it is polled first.
    pub async fn take_away(&self, name: &LockName) -> bool {
        let (memory, deadline) = (&self.0.memory, self.0.clock.now());
        let Ok(Inspection::Held(lease)) = memory.inspect(name, deadline).await else {
            return false;
        };
        let command = ForceRelease { name: name.clone(), id: lease.id, fence: lease.fence };
        let ended = memory.ask(command, deadline).await;
        matches!(ended, Ok(ForceReleaseAnswer::Ended { .. }))
    }

    fn set(&self, failure: Option<Failure>) {
        *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Runs a command, or lets it fail.
    async fn run(&self, command: Command, deadline: Instant) -> Result<Reply, StoreError> {
        let failure = *self.0.failure.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            None => return self.0.memory.send(command, deadline).await,
            Some(Failure::Refuses) => {
                let error = StoreError::new(
                    StoreErrorKind::Definite,
                    "the test store refuses every command",
                    "call recover() on it",
                );
                return Err(error.as_answer());
            }
            Some(Failure::Unreachable) => {}
            Some(Failure::AnswersLost) => drop(self.0.memory.send(command, deadline).await),
        }
        self.0.clock.sleep_until(deadline).await;
        Err(StoreError::new(
            StoreErrorKind::Indeterminate,
            "the test store did not answer in time",
            "call recover() on it",
        ))
    }
}

impl LockStore for TestStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        Box::pin(self.run(command, deadline))
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.0.memory.listen(runtime, listener);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.0.memory.shard(name)
    }
}
