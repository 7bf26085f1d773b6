use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

/// A gate at which commands wait until a test lets them pass; clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    // Each pass takes a permit for good; a semaphore that is closed is a gate that stands open.
    passes: Arc<Semaphore>,
    arrived: Arc<watch::Sender<usize>>,
}

impl Gate {
    /// A gate that is shut.
    pub fn new() -> Self {
        Self { passes: Arc::new(Semaphore::new(0)), arrived: Arc::new(watch::Sender::new(0)) }
    }

    /// Lets the next `n` commands pass, in the order in which they arrived.
    pub fn let_pass(&self, n: usize) {
        self.passes.add_permits(n);
    }

    /// Opens the gate for good.
    pub fn open(&self) {
        self.passes.close();
    }

    /// How many commands have come to the gate so far, whether they passed or not.
    pub fn arrived(&self) -> usize {
        *self.arrived.borrow()
    }

    /// Waits until `n` commands in all have come to the gate.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn wait_for_arrivals(&self, n: usize) {
        // Never closed: this gate is one of its senders.
        let _ = self.arrived.subscribe().wait_for(|arrived| *arrived >= n).await;
    }

    /// Waits for the gate to let the caller pass.
    pub(crate) async fn pass(&self) {
        self.arrived.send_modify(|arrived| *arrived += 1);
        if let Ok(permit) = self.passes.acquire().await {
            permit.forget();
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
