//! The lock runtime of a process, which puts the crates together.

mod builder;
mod error;
mod handle;

pub use builder::LockRuntimeBuilder;
pub use error::{ConnectError, InspectError};
pub use handle::{ForceReleased, LockRuntime};
