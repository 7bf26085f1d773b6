//! What the locks of one runtime share: it applies events to the states of all names, and carries out
//! what follows.

mod core;
mod delivery;
mod events;
mod executor;
mod health;
mod heartbeats;
mod kept;
mod listener;
mod names;
mod operations;
mod outbox;
mod sending;
#[cfg(test)]
mod tests;
mod watermarks;

pub(crate) use delivery::DeliveryEnd;
pub(crate) use names::NameEntry;

pub use self::core::{Engine, EngineParts, Footprint, ShutdownReport};
pub use executor::Executor;
pub use health::Health;
