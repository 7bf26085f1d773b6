use std::sync::{Arc, Weak};

use super::{node::QuorumNode, store::Inner};
use crate::{
    store::{Listener, Push},
    types::{AcquisitionId, LockName, RuntimeId},
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
        let (Some(inner), Some(listener)) = (self.inner.upgrade(), self.listener.upgrade()) else {
            return;
        };
        // Nodes know the last token of a block, and runtimes the first.
        let first = |id| inner.records.lock().get(id).map(|record| record.first);
        let push = match push {
            // A node alone grants nothing, so none says so.
            Push::Granted { .. } => Push::Unexpected,
            Push::Wanted { name, id, fence } if listener.proves(&name, id) => {
                match (first(id), fence.get() == TURN) {
                    (None, true) => return inner.call(id),
                    (Some(fence), false) => Push::Wanted { name, id, fence },
                    // It has its turn already, or has lost its lease.
                    _ => return,
                }
            }
            Push::ForceReleased { name, id, fence } => {
                Push::ForceReleased { name, id, fence: first(id).unwrap_or(fence) }
            }
            other => other,
        };
        listener.on_push(push);
    }

    fn proves(&self, name: &LockName, id: AcquisitionId) -> bool {
        self.listener.upgrade().is_some_and(|listener| listener.proves(name, id))
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
