//! A master with two replicas, and three Sentinels that choose another master when it fails.

mod launch;
mod member;
mod sentinel_group;

pub use member::Sentinel;
pub use sentinel_group::SentinelGroup;
