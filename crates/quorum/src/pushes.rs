use std::sync::{Arc, Weak};

use leasehold_core::{
    AcquisitionId, LockName, RuntimeId,
    store::{Listener, Push},
};

use super::{node::QuorumNode, state::Quorum};

/// The fence in a message for a waiter. A message for a holder has the fence of its lease.
const TURN: u64 = 1;

/// Receives the messages of all nodes for one runtime, and merges them into one.
#[derive(Debug)]
struct NodePushes<N: QuorumNode> {
    quorum: Weak<Quorum<N>>,
    listener: Weak<dyn Listener>,
}

/// Passes the messages of the nodes for a runtime on.
pub(super) fn listen<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    runtime: RuntimeId,
    listener: Weak<dyn Listener>,
) {
    let pushes = NodePushes { quorum: Arc::downgrade(quorum), listener: Weak::clone(&listener) };
    let pushes: Arc<dyn Listener> = Arc::new(pushes);
    for node in &quorum.nodes {
        node.listen(runtime, Arc::downgrade(&pushes));
    }
    quorum.listeners.lock().insert(runtime, (listener, pushes));
}

/// Tells a runtime that listens.
pub(super) fn publish<N: QuorumNode>(quorum: &Quorum<N>, runtime: RuntimeId, push: Push) {
    let listener = quorum.listeners.lock().get(&runtime).and_then(|(to, _)| to.upgrade());
    if let Some(listener) = listener {
        listener.on_push(push);
    }
}

impl<N: QuorumNode> Listener for NodePushes<N> {
    fn on_push(&self, push: Push) {
        let (Some(quorum), Some(listener)) = (self.quorum.upgrade(), self.listener.upgrade())
        else {
            return;
        };
        // Nodes know the last token of a block, and runtimes the first.
        let first = |id| quorum.records.lock().get(id).map(|record| record.first);
        let push = match push {
            // A node alone grants nothing, so none says so.
            Push::Granted { .. } => Push::Unexpected,
            Push::Wanted { name, id, fence } if listener.proves(&name, id) => {
                match (first(id), fence.get() == TURN) {
                    (None, true) => return quorum.claims.call(id),
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
