//! What the examples of services share: where their locks are, and how they say what came of a run.

mod outcome;
mod place;

pub use outcome::Outcome;
pub use place::{Place, SHUTDOWN};
