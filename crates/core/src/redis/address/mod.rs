//! Where a server is: what users may give as its address, and what is wrong with one.

mod cluster_nodes;
mod host_list;
mod quorum_nodes;
mod redis_address;
mod sentinel_group;
mod spelling;

pub use redis_address::{AddressError, AddressPart, RedisAddress};
pub(super) use sentinel_group::SentinelGroup;
