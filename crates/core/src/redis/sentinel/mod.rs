//! The Sentinels that name a master: what they are asked, and whom to believe.

mod ballot;
mod found;
mod group;
mod member;

pub use ballot::{MasterVerdict, decide};
pub use found::FoundMaster;
pub(super) use group::{Sentinels, unreachable_one};
pub(super) use member::client_of;
