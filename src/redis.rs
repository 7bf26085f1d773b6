//! The connection to Redis: addresses, settings, credentials, and the pool of a gate.

pub use leasehold_core::{QuorumSettings, Replication};
#[cfg(feature = "tls")]
pub use leasehold_redis::Pem;
/// The pool of connections: a `Pool` of this version becomes a [`RedisPool`].
#[cfg(feature = "deadpool")]
pub use leasehold_redis::deadpool_redis;
/// The client library: a `Client` or `ConnectionInfo` of this version is an address.
pub use leasehold_redis::redis_client as client;
pub use leasehold_redis::{Credentials, CredentialsProvider, RedisAddress, RedisConfig, RedisPool};
