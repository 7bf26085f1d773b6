use std::fmt;

use super::Granted;
use crate::types::{AcquisitionId, FenceToken, LockName};

/// A message that a store sends to a runtime unasked. It may come late, twice, or never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// A waiter of the runtime was granted the lock.
    Granted {
        /// The lock.
        name: LockName,
        /// The acquisition that was granted it.
        id: AcquisitionId,
        /// The grant. Its remaining time counts from the grant on, a moment that the runtime does
        /// not know.
        granted: Granted,
        /// The number of the last heartbeat of the waiter that the store had received.
        heartbeat: u64,
    },
    /// An operator ended a lease of the runtime.
    ForceReleased {
        /// The lock.
        name: LockName,
        /// The acquisition that held it.
        id: AcquisitionId,
        /// The first token of its grant.
        fence: FenceToken,
    },
    /// Another runtime waits for a lock that this runtime keeps. The first one in the queue repeats
    /// it with every heartbeat.
    Wanted {
        /// The lock.
        name: LockName,
        /// The acquisition that holds it.
        id: AcquisitionId,
        /// The first token of its grant.
        fence: FenceToken,
    },
    /// Pushes arrive from now on. Earlier ones may be lost, so ask again.
    Listening,
}

/// Receives the pushes of a store for a runtime, on a task of the store: it must not block.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// A push has arrived.
    fn on_push(&self, push: Push);
}
