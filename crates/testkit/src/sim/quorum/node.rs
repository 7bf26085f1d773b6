use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::Poll,
};

use futures_util::future::join_all;
use leasehold_core::{
    Clock, Instant, LockName, NamePattern, RuntimeId, StoreError, StoreErrorKind, store::Listener,
};
use leasehold_quorum::{NodeAnswer, NodeCommand, QuorumNode};

use super::net::{Net, Slot};
use crate::ManualClock;

/// A node at the other end of a network, as one process sees it.
#[derive(Clone)]
pub struct SimNode {
    pub(super) net: Arc<Mutex<Net>>,
    pub(super) process: usize,
    pub(super) node: usize,
    pub(super) clock: ManualClock,
}

impl SimNode {
    fn net(&self) -> std::sync::MutexGuard<'_, Net> {
        self.net.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn outcome(&self, slot: Slot, deadline: Instant) -> Result<NodeAnswer, StoreError> {
        let answer = poll_fn(|cx| {
            let mut state = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(answer) = state.answer.take() {
                return Poll::Ready(answer);
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        });
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.clock.sleep_until(deadline) => {
                let what = "the node did not answer in time";
                Err(StoreError::new(StoreErrorKind::Indeterminate, what, "check it"))
            }
        }
    }
}

impl QuorumNode for SimNode {
    async fn send(
        &self,
        command: NodeCommand,
        deadline: Instant,
    ) -> Result<NodeAnswer, StoreError> {
        let slot = self.net().send(self.process, self.node, command);
        self.outcome(slot, deadline).await
    }

    async fn send_apart(
        &self,
        commands: Vec<NodeCommand>,
        deadline: Instant,
    ) -> Vec<Result<NodeAnswer, StoreError>> {
        join_all(commands.into_iter().map(|command| self.send(command, deadline))).await
    }

    async fn scan(
        &self,
        pattern: &NamePattern,
        _at: u64,
        _deadline: Instant,
    ) -> Result<(Vec<LockName>, Option<u64>), StoreError> {
        let mut names = self.net().peers[self.node].memory.names();
        names.retain(|name| pattern.matches(name));
        Ok((names, None))
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.net().listeners.insert((self.node, runtime), (self.process, listener));
    }

    fn place(&self) -> String {
        format!("node {}", self.node)
    }
}

impl fmt::Debug for SimNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimNode").field("node", &self.node).finish_non_exhaustive()
    }
}
