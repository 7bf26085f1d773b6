use std::time::Duration;

use rslock::{LockGuard, LockManager};

use crate::{Failure, options::Options, worker::Contender};

/// As long as Leasehold's.
const TTL: Duration = Duration::from_secs(30);

/// The pause between two tries is random and below this.
const RETRY: Duration = Duration::from_millis(4);

/// Tasks that retry as the library does by default: every 0 to 200 ms.
pub(crate) fn default(options: &Options) -> Vec<Task> {
    tasks(options, &manager(options))
}

/// Tasks that retry often.
pub(crate) fn tuned(options: &Options) -> Vec<Task> {
    let mut manager = manager(options);
    manager.set_retry(u32::MAX, RETRY);
    tasks(options, &manager)
}

/// A manager of one server, or of a quorum of those whose addresses commas part.
fn manager(options: &Options) -> LockManager {
    LockManager::new(options.redis.split(',').collect())
}

fn tasks(options: &Options, manager: &LockManager) -> Vec<Task> {
    options.names().map(|name| Task { manager: manager.clone(), name }).collect()
}

/// A task of a process that shares one manager.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    manager: LockManager,
    name: String,
}

impl Contender for Task {
    type Held = LockGuard;

    async fn acquire(&mut self) -> Result<LockGuard, Failure> {
        Ok(self.manager.acquire(self.name.as_str(), TTL).await?)
    }

    async fn release(&mut self, guard: LockGuard) -> Result<(), Failure> {
        guard.release().await;
        Ok(())
    }
}
