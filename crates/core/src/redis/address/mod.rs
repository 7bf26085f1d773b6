//! Where a server is: what users may give as its address, and what is wrong with one.

mod redis_address;
mod spelling;

pub use redis_address::{AddressError, AddressPart, RedisAddress};
