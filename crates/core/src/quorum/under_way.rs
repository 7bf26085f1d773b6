use std::{collections::BTreeMap, sync::Arc};

use super::{node::QuorumNode, store::Inner};
use crate::types::AcquisitionId;

/// The acquisitions that are asked for at present, with how many calls, and whether they are over.
pub(crate) type UnderWay = BTreeMap<AcquisitionId, (u32, bool)>;

/// A call that asks for an acquisition.
pub(crate) struct SetOut<N: QuorumNode>(Arc<Inner<N>>, AcquisitionId);

impl<N: QuorumNode> Inner<N> {
    pub(crate) fn set_out(self: &Arc<Self>, id: AcquisitionId) -> SetOut<N> {
        self.under_way.lock().entry(id).or_default().0 += 1;
        SetOut(Arc::clone(self), id)
    }

    /// The acquisition is released or withdrawn: no call that still asks for it may get it.
    pub(crate) fn call_off(&self, id: AcquisitionId) {
        if let Some((_, is_over)) = self.under_way.lock().get_mut(&id) {
            *is_over = true;
        }
    }

    pub(crate) fn is_over(&self, id: AcquisitionId) -> bool {
        self.under_way.lock().get(&id).is_some_and(|(_, is_over)| *is_over)
    }
}

impl<N: QuorumNode> Drop for SetOut<N> {
    fn drop(&mut self) {
        let mut all = self.0.under_way.lock();
        if let Some((calls, _)) = all.get_mut(&self.1) {
            *calls -= 1;
            if *calls == 0 {
                all.remove(&self.1);
            }
        }
    }
}
