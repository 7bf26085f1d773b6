//! Whether the server answers: one rule, fed with every command in one place.
//!
//! - [`OutageState`] is the rule, a pure function of what was sent, answered and left unanswered.
//! - [`OutageWatch`] keeps it for one runtime, and logs an outage; [`WatchedStore`] stands before the store
//!   and reports every command to it.

mod log;
mod state;
mod watch;

pub use log::tenths;
pub use state::{Outage, OutageState};
pub use watch::{OutageWatch, WatchedStore};
