//! What the locks of one runtime share: it applies events to the cohorts of all names, and carries
//! out what follows.

mod backlog;
mod core;
mod dropped;
mod executor;
mod farewell;
mod graph;
mod heartbeats;
mod inspect;
mod kept;
mod line;
mod listener;
mod outgoing;
mod pending;
mod sending;
mod shutdown;
mod table;
#[cfg(test)]
mod tests;
mod watermarks;

pub(crate) use line::{InLine, NewLease, News, Request};
pub(crate) use pending::Cleanup;

pub use self::core::{Engine, EngineParts, Footprint};
pub use executor::Executor;
pub use shutdown::ShutdownReport;
