//! Whether the server answers: one rule, fed with every command in one place.
//!
//! - [`OutageState`] is the rule, a pure function of what was sent, answered and left unanswered.
//! - [`OutageWatch`] keeps it for one runtime, and logs an outage.
//! - [`WatchedStore`] stands before the store and reports every command to the watch.

mod log;
mod state;
mod store;
mod subject;
mod watch;

pub use state::{Outage, OutageState};
pub use store::{Watched, WatchedStore};
pub use subject::Subject;
pub use watch::{AtStake, OutageWatch};
