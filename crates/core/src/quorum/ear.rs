use std::sync::{Arc, Weak};

use super::{node::QuorumNode, store::Inner};
use crate::{
    store::{Listener, Push},
    types::RuntimeId,
};

/// The fence of a message for an acquisition that waits; those for a holder have that of its lease.
const TURN: u64 = 1;

/// Hears the messages of all nodes for one runtime, and passes on what they mean together.
#[derive(Debug)]
pub(crate) struct Ear<N: QuorumNode> {
    inner: Weak<Inner<N>>,
    listener: Weak<dyn Listener>,
}

impl<N: QuorumNode> Ear<N> {
    pub(crate) fn new(inner: &Arc<Inner<N>>, listener: Weak<dyn Listener>) -> Self {
        Self { inner: Arc::downgrade(inner), listener }
    }
}

impl<N: QuorumNode> Listener for Ear<N> {
    fn on_push(&self, push: Push) {
        let Some(inner) = self.inner.upgrade() else { return };
        // Nodes know the last token of a block, and runtimes the first.
        let first = |id| inner.records.lock().get(id).map(|record| record.first);
        let push = match push {
            Push::Wanted { name, id, fence } => match (first(id), fence.get() == TURN) {
                (None, true) => return inner.call(id),
                (Some(fence), false) => Push::Wanted { name, id, fence },
                // It has its turn already, or has lost its lease.
                _ => return,
            },
            Push::ForceReleased { name, id, fence } => {
                Push::ForceReleased { name, id, fence: first(id).unwrap_or(fence) }
            }
            other => other,
        };
        if let Some(listener) = self.listener.upgrade() {
            listener.on_push(push);
        }
    }
}

impl<N: QuorumNode> Inner<N> {
    /// Passes something on to a runtime that listens.
    pub(crate) fn tell(&self, runtime: RuntimeId, push: Push) {
        let listener = self.listeners.lock().get(&runtime).and_then(Weak::upgrade);
        if let Some(listener) = listener {
            listener.on_push(push);
        }
    }
}
