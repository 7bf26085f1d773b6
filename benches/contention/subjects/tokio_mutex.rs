use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{Failure, options::Options, worker::Contender};

/// Tasks that share a mutex of their process alone.
pub(crate) fn tasks(options: &Options) -> Vec<Task> {
    vec![Task(Arc::default()); options.workers]
}

/// A task that has no need of Redis.
#[derive(Debug, Clone)]
pub(crate) struct Task(Arc<Mutex<()>>);

impl Contender for Task {
    type Held = OwnedMutexGuard<()>;

    async fn acquire(&mut self) -> Result<Self::Held, Failure> {
        Ok(Arc::clone(&self.0).lock_owned().await)
    }

    async fn release(&mut self, held: Self::Held) -> Result<(), Failure> {
        drop(held);
        Ok(())
    }
}
