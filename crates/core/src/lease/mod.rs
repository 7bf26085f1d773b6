//! The rules of a lease as pure functions of state, time and event: no IO, no clock.

mod belief;
mod grant;
mod holds;
mod rules;
mod state;

pub use belief::{believed_until, margin};
pub use grant::Grant;
pub use holds::{HoldUpdate, Holds, HoldsError};
pub use rules::LeaseRules;
pub use state::{LeaseState, LossReason};
