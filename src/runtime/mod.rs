//! The lock runtime of a process, which puts the crates together.

mod builder;
mod handle;

pub use builder::{ConnectError, LockRuntimeBuilder};
pub use handle::{ForceReleased, InspectError, LockRuntime};
