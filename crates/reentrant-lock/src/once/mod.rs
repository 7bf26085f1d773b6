//! Runs of which there is one at a time, and none for a while after a success.

mod builder;
mod duplicate;
mod guard;
mod outcome;
mod run;
mod unconfirmed;

pub use builder::Once;
pub use duplicate::{Duplicate, Progress};
pub use guard::OnceGuard;
pub use outcome::{Begun, OnceOutcome};
