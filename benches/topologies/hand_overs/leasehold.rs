use std::time::Duration;

use leasehold::{Guard, LockRuntime, ReentrantLock};

use crate::{Failure, worker::Contender};

/// How long a runtime may take to leave.
const PATIENCE: Duration = Duration::from_secs(5);

/// Leaves nothing behind that others would have to wait for.
pub(super) async fn leave(locks: &LockRuntime) {
    // The next round has empty servers.
    let _ = locks.shutdown(PATIENCE).await;
}

/// A task that uses the library's public API.
#[derive(Debug, Clone)]
pub(super) struct Task(pub(super) ReentrantLock);

impl Contender for Task {
    type Held = Guard;

    async fn acquire(&mut self) -> Result<Guard, Failure> {
        Ok(self.0.acquire().await?)
    }

    async fn release(&mut self, guard: Guard) -> Result<(), Failure> {
        guard.release().await?;
        Ok(())
    }
}
