//! Runtimes that give a busy machine time to answer.

use std::time::Duration;

use leasehold::{LockRuntime, LockRuntimeBuilder};

/// A builder with long timeouts; commands of a lease still have at most half its ttl.
pub(crate) fn builder() -> LockRuntimeBuilder {
    let builder = LockRuntime::builder().connect_timeout(Duration::from_secs(20));
    builder.command_timeout(Duration::from_secs(10)).outage_patience(Duration::from_secs(60))
}
