//! Where a server is: what users may give as its address, and what is wrong with one.

mod error;
mod redis_address;
mod server_list;
mod spelling;

pub use error::{AddressError, AddressPart};
pub use redis_address::RedisAddress;
pub use server_list::SentinelGroup;
