use std::time::Duration;

use rslock::LockManager;

use super::Pairs;
use crate::Failure;

/// As long as Leasehold's.
const TTL: Duration = Duration::from_secs(30);

impl Pairs for LockManager {
    async fn pair(&self, name: &str, _number: usize) -> Result<(), Failure> {
        let guard = self.acquire(name, TTL).await?;
        guard.release().await;
        Ok(())
    }
}
