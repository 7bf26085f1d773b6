use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::{Lock, fenced::Fenced};
use crate::Failure;

/// Two scripts with a fence, for locks that nobody waits for.
#[derive(Debug, Clone)]
pub(crate) struct Floor {
    scripts: Fenced,
    leases: Arc<AtomicUsize>,
}

impl Floor {
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self { scripts: Fenced::connect(url).await?, leases: Arc::default() })
    }
}

impl Lock for Floor {
    type Name = String;
    type Held = usize;

    fn name(&self, name: &str) -> Result<String, Failure> {
        Ok(name.to_owned())
    }

    async fn acquire(&self, name: &String) -> Result<(u64, usize), Failure> {
        let number = self.leases.fetch_add(1, Ordering::Relaxed);
        Ok((self.scripts.acquire(name, number).await?, number))
    }

    async fn release(&self, name: &String, number: usize) -> Result<(), Failure> {
        self.scripts.release(name, number).await
    }

    async fn leave(&self) {}
}
