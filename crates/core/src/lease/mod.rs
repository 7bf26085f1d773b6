//! The rules of a lease as pure functions of state, time and event: no IO, no clock.

mod grant;
mod heard;
mod holds;
mod state;

pub use grant::Grant;
pub use heard::HeardEnd;
pub use holds::{HoldUpdate, Holds, HoldsError};
pub use state::{Expiry, LeaseEnd, LeaseRules, LeaseState, LossReason, believed_until, margin};
