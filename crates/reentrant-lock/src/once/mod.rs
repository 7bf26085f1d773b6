//! Runs of which there is one at a time, and none for a while after a success.

mod builder;
mod guard;
mod outcome;
mod run;

pub use builder::Once;
pub use guard::OnceGuard;
pub use outcome::{Begun, Duplicate, OnceOutcome, Progress};
