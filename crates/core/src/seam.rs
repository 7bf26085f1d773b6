//! Where tests put wrong decisions in: those of the embedded store, the real ones by default.
//!
//! Not part of the public interface. The simulation replaces one of them and expects that its
//! checks notice.

use std::num::NonZeroU32;

use crate::types::{AcquisitionId, FenceToken};

/// A lease as a command names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The acquisition.
    pub id: AcquisitionId,
    /// The first token of its grant.
    pub fence: FenceToken,
}

/// A part of what the embedded store keeps of a name, for tests that lose one alone. Each is a key
/// in Redis, which can be evicted alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Who holds the lock.
    Lease,
    /// The fence counter.
    Counter,
    /// The order of the waiters.
    Queue,
    /// The places of the waiters: until its next heartbeat, none of them counts as alive.
    Waiters,
    /// The marks of withdrawn acquisitions.
    Marks,
}

/// The decisions of the embedded store that a mutant may replace.
#[derive(Debug, Clone, Copy)]
pub struct StoreRules {
    /// Whether a renewal or a hold is about the present lease (the lease, then what the command
    /// names): acquisition and fence must be the same.
    pub extends: fn(Named, Named) -> bool,
    /// Whether a release is about the present lease, likewise.
    pub releases: fn(Named, Named) -> bool,
    /// The number of holds to store, of the stored one and the one of the command: the latter.
    pub holds: fn(u32, NonZeroU32) -> u32,
    /// Whether the renewal of a lease on a free lock creates it anew: never.
    pub renewal_recreates: fn(Named) -> bool,
    /// Up to where a grant of the block from the first to the last token moves the counter: to
    /// the last.
    pub reserves: fn(FenceToken, FenceToken) -> FenceToken,
    /// Whether an acquisition is dead, given whether it bears the mark of a withdrawal.
    pub is_withdrawn: fn(bool) -> bool,
    /// Whether the place of the first acquisition leaves the queue when the second is withdrawn:
    /// when they are the same.
    pub leaves_queue: fn(AcquisitionId, AcquisitionId) -> bool,
    /// Whether the answer of a server is believed, given whether it is the master: only then.
    pub is_believed: fn(is_master: bool) -> bool,
}

impl Default for StoreRules {
    fn default() -> Self {
        Self {
            extends: |lease, named| lease == named,
            releases: |lease, named| lease == named,
            holds: |_, count| count.get(),
            renewal_recreates: |_| false,
            reserves: |_, last| last,
            is_withdrawn: |marked| marked,
            leaves_queue: |place, withdrawn| place == withdrawn,
            is_believed: |is_master| is_master,
        }
    }
}
