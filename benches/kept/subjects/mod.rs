//! What is compared.

#[path = "../../acquire_release/subjects/connections.rs"]
mod connections;
#[path = "../../acquire_release/subjects/fenced.rs"]
mod fenced;
mod floor;
mod leasehold;

use std::future::Future;

use connections::{connection, connections};
pub(crate) use floor::Floor;
pub(crate) use leasehold::Leasehold;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The subjects, in the order in which a report shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Subject {
    /// Leasehold, which keeps idle turns.
    On,
    /// Leasehold with its default settings.
    Off,
    /// Two scripts with a fence that promise nothing else.
    Floor,
    /// Acquires of names that another runtime keeps.
    Recalled,
    /// Acquires of names that nobody has.
    Free,
}

impl Subject {
    /// What rows call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::On => "keeping on",
            Self::Off => "keeping off",
            Self::Floor => "floor",
            Self::Recalled => "recalled",
            Self::Free => "free",
        }
    }
}

/// Something that gives locks.
pub(crate) trait Lock: Clone + Send + Sync + 'static {
    /// What it makes of a name.
    type Name: Send + Sync + 'static;

    /// What a task has while it has a lock.
    type Held: Send;

    /// Prepares a name.
    fn name(&self, name: &str) -> Result<Self::Name, Failure>;

    /// Waits for a lock, and tells its fence.
    fn acquire(
        &self,
        name: &Self::Name,
    ) -> impl Future<Output = Result<(u64, Self::Held), Failure>> + Send;

    /// Gives it back.
    fn release(
        &self,
        name: &Self::Name,
        held: Self::Held,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Leaves nothing behind.
    fn leave(&self) -> impl Future<Output = ()> + Send;
}
