//! Whether the server answers: one rule, fed by every command in one place.
//!
//! - [`Silence`] is the rule, a pure function of what was sent, answered and left unanswered.
//! - [`OutageWatch`] keeps it for one runtime.
//! - [`WatchedStore`] stands before the store and tells the watch of every command.

mod command;
mod silence;
mod watch;
mod watched_store;

pub use command::{CommandKind, Subject};
pub use silence::{Outage, Silence};
pub use watch::OutageWatch;
pub use watched_store::WatchedStore;
