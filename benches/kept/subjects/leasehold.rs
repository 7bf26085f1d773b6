use std::time::Duration;

use leasehold::{Guard, LockRuntime, ReentrantLock, store::Inspection};

use super::Lock;
use crate::Failure;

/// How long a runtime may take to end what it keeps.
const PATIENCE: Duration = Duration::from_secs(5);

/// A runtime that may keep idle turns.
#[derive(Debug, Clone)]
pub(crate) struct Leasehold(LockRuntime);

impl Leasehold {
    pub(crate) async fn connect(url: &str, keep_idle: Option<Duration>) -> Result<Self, Failure> {
        let builder = LockRuntime::builder();
        let builder = match keep_idle {
            Some(time) => builder.keep_idle(time),
            None => builder,
        };
        Ok(Self(builder.connect(url).await?))
    }

    /// Whether somebody has a lock, or keeps it.
    pub(crate) async fn is_taken(&self, name: &str) -> Result<bool, Failure> {
        Ok(matches!(self.0.inspect(name).await?, Inspection::Held(_)))
    }
}

impl Lock for Leasehold {
    type Name = ReentrantLock;
    type Held = Guard;

    fn name(&self, name: &str) -> Result<ReentrantLock, Failure> {
        Ok(self.0.lock(name)?)
    }

    async fn acquire(&self, lock: &ReentrantLock) -> Result<(u64, Guard), Failure> {
        let guard = lock.acquire().await?;
        Ok((guard.fence().into(), guard))
    }

    async fn release(&self, _lock: &ReentrantLock, guard: Guard) -> Result<(), Failure> {
        guard.release().await?;
        Ok(())
    }

    async fn leave(&self) {
        // The next round has an empty server.
        let _ = self.0.shutdown(PATIENCE).await;
    }
}
