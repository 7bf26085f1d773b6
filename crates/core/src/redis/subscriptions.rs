use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use tokio::{runtime::Handle, task::JoinSet};

use super::{dial::Dialer, subscriber::Subscriber};
use crate::{clock::Clock, mutex::Mutex, store::Listener, types::RuntimeId};

/// The subscriptions of a store: at most one for a runtime, each a task with a connection.
#[derive(Debug)]
pub(super) struct Subscriptions {
    dialer: Arc<Dialer>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    /// One task for each, which ends when its set is dropped.
    tasks: Mutex<BTreeMap<RuntimeId, JoinSet<()>>>,
}

impl Subscriptions {
    /// None yet; tasks and connections will live on the given tokio runtime.
    pub(super) fn new(dialer: Arc<Dialer>, clock: Arc<dyn Clock>, runtime: Handle) -> Self {
        Self { dialer, clock, runtime, tasks: Mutex::default() }
    }

    /// Passes the messages on the channel of a runtime to a listener, from now on.
    pub(super) fn listen(&self, runtime: RuntimeId, channel: String, listener: Weak<dyn Listener>) {
        let (dialer, clock) = (Arc::clone(&self.dialer), Arc::clone(&self.clock));
        let subscriber = Subscriber { dialer, clock, channel, listener };
        let mut tasks = self.tasks.lock();
        tasks.retain(|_, task| task.try_join_next().is_none());
        // The old subscription ends first.
        tasks.remove(&runtime);
        tasks.entry(runtime).or_default().spawn_on(subscriber.run(), &self.runtime);
    }
}
