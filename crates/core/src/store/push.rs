use std::fmt;

use super::Granted;
use crate::types::{AcquisitionId, FenceToken, LockName};

/// What a store tells a runtime without being asked. It may come late, twice, or never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// A waiter of the runtime was granted the lock.
    Granted {
        /// The lock.
        name: LockName,
        /// Who was granted it.
        id: AcquisitionId,
        /// The grant; what it has left counts from the moment of the grant, which nobody knows.
        granted: Granted,
        /// The number of the last sign of life that the store had heard of the waiter.
        heartbeat: u64,
    },
    /// Somebody ended a lease of the runtime by force.
    ForceReleased {
        /// The lock.
        name: LockName,
        /// The acquisition that held it.
        id: AcquisitionId,
        /// The first token of its grant.
        fence: FenceToken,
    },
    /// The store can be heard from now on; what it told before may be lost, so ask again.
    Listening,
}

/// Who takes what a store tells a runtime. Called on the store's own task: must not block.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// Takes a message.
    fn heard(&self, push: Push);
}
