use std::time::Duration;

use crate::types::{AcquisitionId, FenceToken};

/// What a look at a lock shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// Nobody holds it.
    Free {
        /// The last token that was granted, if the counter is still known.
        last_fence: Option<FenceToken>,
    },
    /// Somebody holds it.
    Held(LeaseRecord),
}

/// A runtime that waits for a lock, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiterRecord {
    /// The acquisition that waits.
    pub id: AcquisitionId,
    /// The label of its runtime.
    pub label: String,
    /// How long ago it was last heard, by the server's clock.
    pub silent_for: Duration,
}

/// A lease as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The acquisition that holds the lock.
    pub id: AcquisitionId,
    /// The first token of its grant; that of the present holder's lease may be greater.
    pub fence: FenceToken,
    /// The nested holds; 0 when the lease is only kept closed.
    pub holds: u32,
    /// How long the lease has left without renewal.
    pub remaining: Duration,
    /// The label of the holder's runtime.
    pub label: String,
    /// How long ago the lease was granted, by the server's clock.
    pub held_for: Duration,
    /// Whether the lease was released and is only kept closed for a while.
    pub kept: bool,
    /// Whether the holder's runtime may keep the lock idle after its last lease: it then passes the
    /// lock on when another one queues. False when the lease is only kept closed.
    pub keeps: bool,
    /// Whether no task holds the lock. Only the runtime that keeps it knows; in others it is false.
    pub idle: bool,
    /// The runtimes that wait, the next one first; at most the first 128.
    pub waiters: Vec<WaiterRecord>,
}
