//! What the examples of services share: where their locks and data are, instances that can die, and
//! the report of a run.

mod database;
mod failure;
mod instance;
mod outcome;
mod place;
mod refusal;
mod stall;

pub use database::Database;
pub use failure::{Failure, end};
pub use instance::Instance;
pub use outcome::Outcome;
pub use place::{Place, SHUTDOWN};
pub use refusal::Refusal;
pub use stall::Stall;
