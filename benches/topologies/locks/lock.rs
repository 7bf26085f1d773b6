use leasehold_core::{AcquisitionId, Fence, LockName, RuntimeId};

/// A lock, and who has which place in it.
#[derive(Debug, Clone)]
pub(super) struct Lock {
    pub(super) name: LockName,
    /// The holder's grant.
    pub(super) holder: Option<(AcquisitionId, Fence)>,
    /// Those who wait, the next one first.
    pub(super) waiters: Vec<AcquisitionId>,
    /// The number of the last acquisition and the last heartbeat.
    number: u64,
}

impl Lock {
    pub(super) fn new(name: LockName) -> Self {
        Self { name, holder: None, waiters: Vec::new(), number: 0 }
    }

    /// A number that is greater than all before.
    pub(super) fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// An acquisition of a runtime.
    pub(super) fn acquisition(&mut self, runtime: RuntimeId) -> AcquisitionId {
        AcquisitionId::new(runtime, self.next())
    }
}
