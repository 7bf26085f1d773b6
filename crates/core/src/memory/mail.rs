use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use crate::{
    store::{Listener, Push},
    types::RuntimeId,
};

/// A message that a rule sends to a runtime.
#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) to: RuntimeId,
    pub(crate) push: Push,
}

/// The listener of each runtime; listeners that were dropped are removed.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    of: BTreeMap<RuntimeId, Weak<dyn Listener>>,
}

impl Listeners {
    /// Sets the listener of a runtime.
    pub(crate) fn register(&mut self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.of.retain(|_, other| other.strong_count() > 0);
        self.of.insert(runtime, listener);
    }

    /// The listener of a runtime.
    pub(crate) fn of(&mut self, runtime: RuntimeId) -> Option<Arc<dyn Listener>> {
        let listener = self.of.get(&runtime)?.upgrade();
        if listener.is_none() {
            self.of.remove(&runtime);
        }
        listener
    }
}
