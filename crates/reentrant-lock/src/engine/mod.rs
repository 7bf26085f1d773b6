//! What the locks of one runtime share: it applies events to the states of all names, and carries out
//! what follows.

mod agenda;
mod backlog;
mod cleanup;
mod core;
mod delivery;
mod events;
mod executor;
mod heartbeats;
mod kept;
mod late;
mod listener;
mod names;
mod operations;
mod outbox;
mod reports;
mod sending;
mod shutdown;
#[cfg(test)]
mod tests;
mod watermarks;

pub(crate) use cleanup::Cleanup;
pub(crate) use names::NameEntry;

pub use self::core::{Engine, EngineParts, Footprint};
pub use executor::Executor;
pub use shutdown::ShutdownReport;
