//! The Sentinels that name a master: what they are asked, and whom to believe.

mod ballot;
mod group;
mod member;

pub use ballot::{FoundMaster, MasterVerdict, decide};
pub(super) use group::Sentinels;
pub use group::{DISAGREEING, NAMED_MASTER, UNKNOWN_NAME, of_named_master, unreachable_one};
pub use member::connect_to;
