use leasehold::LockRuntime;

use super::Pairs;
use crate::Failure;

impl Pairs for LockRuntime {
    async fn pair(&self, name: &str, _number: usize) -> Result<(), Failure> {
        let guard = self.lock(name)?.acquire().await?;
        guard.release().await?;
        Ok(())
    }
}
