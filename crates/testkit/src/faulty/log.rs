use leasehold_core::{
    StoreError,
    store::{Command, Reply},
};

/// A command that reached the store behind the faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// The command.
    pub command: Command,
    /// Whether it was delivered late.
    pub late: bool,
}

/// How a command ended that was delivered late; its sender never hears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The command.
    pub command: Command,
    /// What the store answered.
    pub outcome: Result<Reply, StoreError>,
}
