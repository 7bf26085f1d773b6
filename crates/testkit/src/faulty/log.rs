use leasehold_core::StoreError;

use super::{answer::Answer, command::Command};

/// A command that reached the store behind the faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The command.
    pub command: Command,
    /// Whether it was delivered late.
    pub late: bool,
}

/// What came of a command that was delivered late, which its sender never hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The command.
    pub command: Command,
    /// What the store answered.
    pub outcome: Result<Answer, StoreError>,
}
