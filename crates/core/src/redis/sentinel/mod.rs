//! The Sentinels that name a master: what they are asked, and whom to believe.

mod ballot;
mod found;
mod group;
mod member;

pub use ballot::{Verdict, decide};
pub use found::Found;
pub(super) use group::{Group, unreachable_one};
pub(super) use member::client_of;
