//! Whether the server answers: one rule, fed with every command in one place.
//!
//! - [`Silence`] is the rule, a pure function of what was sent, answered and left unanswered.
//! - [`OutageWatch`] keeps it for one runtime, and logs an outage.
//! - [`WatchedStore`] stands before the store and reports every command to the watch.

mod journal;
mod silence;
mod watch;

pub use journal::{AtStake, LostLease, Subject};
pub use silence::{Outage, Silence};
pub use watch::{OutageWatch, Watched, WatchedStore};
