//! Where a server is: what users may give as its address, and what is wrong with one.

mod error;
mod host_list;
mod node_list;
mod redis_address;
mod sentinel_group;
mod spelling;

pub use error::{AddressError, AddressPart};
pub use redis_address::RedisAddress;
pub use sentinel_group::SentinelGroup;
