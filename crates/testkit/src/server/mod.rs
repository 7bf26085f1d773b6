//! Real Redis servers that a test starts for itself.

mod address;
mod admin;
mod authority;
mod builder;
mod launch;
mod link;
mod redis_server;
mod replicated_pair;
mod replication;
mod version;

pub(crate) use address::Address;
pub(crate) use address::free_port;
pub(crate) use admin::{LIMIT, connect_to, number_in, query};
pub use authority::ClientPems;
pub use builder::RedisServerBuilder;
pub use redis_server::RedisServer;
pub use replicated_pair::ReplicatedPair;
pub(crate) use replication::Replication;
pub use version::ServerVersion;
