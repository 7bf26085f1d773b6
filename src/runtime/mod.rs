//! The lock runtime of a process, which puts the crates together.

mod builder;
mod connect;
mod connect_error;
mod doctor;
mod handle;
mod settings;
mod strictness;

pub use builder::LockRuntimeBuilder;
pub use connect::connect_store;
pub use connect_error::ConnectError;
pub use handle::{ForceReleased, InspectError, LockRuntime};
pub use settings::{Settings, SettingsError};
pub use strictness::Strictness;
