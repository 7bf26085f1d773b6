//! Real Redis servers that a test starts for itself.

mod address;
mod admin;
mod authority;
mod builder;
mod launch;
mod redis_server;

pub(crate) use address::Address;
pub(crate) use address::free_port;
pub use builder::RedisServerBuilder;
pub use redis_server::RedisServer;
