use std::time::Duration;

use leasehold::{Acquire, Guard, LockRuntime, ReentrantLock, error::AcquireError};
use tokio::task::JoinHandle;

use super::world::World;

/// A task that waits for a lock.
pub(crate) struct Waiting(JoinHandle<Result<Guard, AcquireError>>);

impl Waiting {
    /// Starts a task that awaits an acquire; it has not been polled yet.
    pub(crate) fn on(acquire: Acquire) -> Self {
        Self(tokio::spawn(acquire))
    }

    /// Starts a task that waits for [`World::NAME`], and lets it queue.
    pub(crate) async fn queued(world: &World, locks: &LockRuntime) -> Self {
        let waiting = Self::on(lock(locks).acquire());
        world.settle().await;
        assert!(!waiting.is_over(), "the lock is taken");
        waiting
    }

    /// Whether the wait is over, one way or the other.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Drops the acquire where it stands.
    pub(crate) async fn cancel(self) {
        self.0.abort();
        assert!(self.0.await.is_err_and(|end| end.is_cancelled()));
    }

    /// The lease, which is there without any time passing.
    pub(crate) async fn taken(self, world: &World) -> Guard {
        world.settle().await;
        assert!(self.is_over(), "it is this task's turn");
        self.outcome().await.unwrap()
    }

    /// The lease, with the time that passes until it is there.
    pub(crate) async fn taken_within(self, world: &World, limit: Duration) -> (Guard, Duration) {
        let since = world.now();
        let step = Duration::from_micros(500);
        world.settle().await;
        while !self.is_over() {
            assert!(world.now().saturating_since(since) < limit, "not within {limit:?}");
            world.pass(step).await;
        }
        let guard = self.outcome().await.unwrap();
        (guard, world.now().saturating_since(since))
    }

    /// How it ended.
    pub(crate) async fn outcome(self) -> Result<Guard, AcquireError> {
        self.0.await.expect("no waiter panics")
    }
}

/// The lock that most tests are about.
pub(crate) fn lock(locks: &LockRuntime) -> ReentrantLock {
    locks.lock(World::NAME).unwrap()
}

/// Uses the lock once, and lets time pass: the first grant of a name has a single token, later ones
/// have a block, of as many as microseconds have passed.
pub(crate) async fn warm_up(world: &World, locks: &LockRuntime) {
    lock(locks).acquire().await.unwrap().release().await.unwrap();
    world.pass(Duration::from_millis(20)).await;
}
