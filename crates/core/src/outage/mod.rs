//! Whether the server answers: one rule, fed by every command in one place.
//!
//! - [`Silence`] is the rule, a pure function of what was sent, answered and left unanswered.
//! - [`OutageWatch`] keeps it for one runtime, and logs what a person has to know of it: a line for
//!   the first failure, one every few seconds, one for the end.
//! - [`WatchedStore`] stands before the store and tells the watch of every command.

mod command;
mod counts;
mod few;
mod journal;
mod line;
mod silence;
mod watch;
mod watched_store;

pub use command::{CommandKind, Subject};
pub use line::{AtStake, LostLease};
pub use silence::{Outage, Silence};
pub use watch::OutageWatch;
pub use watched_store::WatchedStore;
