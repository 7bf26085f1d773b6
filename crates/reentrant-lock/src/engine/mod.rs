//! What the locks of one runtime share: it applies events to the states of all names, and carries out
//! what follows.

mod core;
mod delivery;
mod events;
mod executor;
mod heartbeats;
mod kept;
mod listener;
mod names;
mod operations;
mod outbox;
mod repeat_rules;
mod sending;
#[cfg(test)]
mod tests;
mod watermarks;

pub(crate) use names::NameEntry;
pub(crate) use repeat_rules::DeliveryEnd;

pub use self::core::{Engine, EngineParts, Footprint, ShutdownReport};
pub use executor::Executor;
