use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{node::QuorumNode, store::Inner};
use crate::{
    clock::{Instant, within},
    types::AcquisitionId,
};

/// The calls that ask for one acquisition at present.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    count: usize,
    /// Whether the acquisition is released or withdrawn.
    is_over: bool,
    /// Whose try it is: two at once would stand in each other's way at the nodes.
    turn: Arc<Mutex<()>>,
}

/// The acquisitions that are asked for at present.
pub(crate) type UnderWay = BTreeMap<AcquisitionId, Calls>;

/// A call whose turn it is to ask for an acquisition.
#[must_use = "dropped, it is another's turn"]
pub(crate) struct SetOut<N: QuorumNode> {
    call: Call<N>,
    _turn: OwnedMutexGuard<()>,
}

/// A call that is counted.
struct Call<N: QuorumNode>(Arc<Inner<N>>, AcquisitionId);

impl<N: QuorumNode> SetOut<N> {
    /// Whether the acquisition is released or withdrawn by now: it may not get anything.
    pub(crate) fn is_over(&self) -> bool {
        let Call(inner, id) = &self.call;
        inner.under_way.lock().get(id).is_some_and(|calls| calls.is_over)
    }
}

impl<N: QuorumNode> Inner<N> {
    /// Waits until no other call tries for the acquisition; `None` if one still does so at the
    /// deadline.
    pub(crate) async fn set_out(
        self: &Arc<Self>,
        id: AcquisitionId,
        deadline: Instant,
    ) -> Option<SetOut<N>> {
        let turn = {
            let mut all = self.under_way.lock();
            let calls = all.entry(id).or_default();
            calls.count += 1;
            Arc::clone(&calls.turn)
        };
        let call = Call(Arc::clone(self), id);
        let turn = match Arc::clone(&turn).try_lock_owned() {
            Ok(turn) => turn,
            Err(_) => within(&*self.clock, deadline, turn.lock_owned()).await?,
        };
        Some(SetOut { call, _turn: turn })
    }

    /// The acquisition is released or withdrawn: no call that still asks for it may get it.
    pub(crate) fn call_off(&self, id: AcquisitionId) {
        if let Some(calls) = self.under_way.lock().get_mut(&id) {
            calls.is_over = true;
        }
    }
}

impl<N: QuorumNode> Drop for Call<N> {
    fn drop(&mut self) {
        let mut all = self.0.under_way.lock();
        if let Some(calls) = all.get_mut(&self.1) {
            calls.count -= 1;
            if calls.count == 0 {
                all.remove(&self.1);
            }
        }
    }
}
