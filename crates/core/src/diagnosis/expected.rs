use std::time::Duration;

use crate::{
    store::FenceSettings,
    types::{Replication, Ttl},
};

/// What the settings of a runtime need of its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// How long a lease lives without renewal.
    pub ttl: Ttl,
    /// How long a grant waits to be taken, and a place for a heartbeat.
    pub claim_window: Duration,
    /// How long one command may take.
    pub command_timeout: Duration,
    /// How fences are made.
    pub fencing: FenceSettings,
    /// Which acknowledgements its grants and renewals wait for.
    pub acks: Replication,
}
