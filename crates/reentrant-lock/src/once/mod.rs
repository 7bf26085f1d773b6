//! Runs of which there is one at a time, and none for a while after a success.

mod guard;
mod run;

pub use guard::OnceGuard;
pub use run::{Begun, Duplicate, Once, OnceOutcome, Progress};
