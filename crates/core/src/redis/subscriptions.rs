use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::{runtime::Handle, task::AbortHandle};

use super::{
    dial::Dialer,
    subscriber::{Subscriber, subscribe},
};
use crate::{
    clock::Clock,
    entropy::{Entropy, SystemEntropy},
    store::{Listener, StoreError},
    types::RuntimeId,
};

/// The subscriptions of a store: at most one for a runtime, each a task with a connection.
#[derive(Debug)]
pub(super) struct Subscriptions {
    dialer: Arc<Dialer>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    runtime: Handle,
    tasks: Mutex<BTreeMap<RuntimeId, Task>>,
}

/// A task that ends when it is dropped.
#[derive(Debug)]
struct Task(AbortHandle);

impl Subscriptions {
    /// None yet; tasks and connections will live on the given tokio runtime.
    pub(super) fn new(dialer: Arc<Dialer>, clock: Arc<dyn Clock>, runtime: Handle) -> Self {
        let (entropy, tasks) = (Arc::new(SystemEntropy::new()), Mutex::default());
        Self { dialer, clock, entropy, runtime, tasks }
    }

    /// Subscribes once and disconnects, so that a missing right shows before a task waits.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: `Config` when the server refuses, `Definite` when it is out of reach.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(super) async fn check(&self, channel: &str) -> Result<(), StoreError> {
        subscribe(&self.dialer, &*self.clock, channel, |_| Ok(())).await.map(drop)
    }

    /// Passes the messages on the channel of a runtime to a listener, from now on.
    pub(super) fn listen(&self, runtime: RuntimeId, channel: String, listener: Weak<dyn Listener>) {
        let subscriber = Subscriber {
            dialer: Arc::clone(&self.dialer),
            clock: Arc::clone(&self.clock),
            entropy: Arc::clone(&self.entropy),
            channel,
            listener,
        };
        let mut tasks = self.tasks();
        tasks.retain(|_, Task(task)| !task.is_finished());
        // The old subscription ends first.
        tasks.remove(&runtime);
        let task = self.runtime.spawn(subscriber.run());
        tasks.insert(runtime, Task(task.abort_handle()));
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<RuntimeId, Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
