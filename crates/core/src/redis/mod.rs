//! The store on a Redis server: connections, scripts, and what their failures mean.

mod address;
mod batcher;
mod classify;
mod cluster;
mod command;
mod config;
mod connect;
mod decode;
mod heartbeat;
mod lane;
mod login;
mod place;
mod pool;
mod preflight;
mod pulse;
mod route;
mod script;
mod scripts;
mod sentinel;
mod store;
mod subscriber;
#[cfg(feature = "tls")]
mod tls;

pub use address::{AddressError, AddressPart, RedisAddress};
pub use cluster::{ClusterStore, slot_of};
pub use config::RedisConfig;
pub use connect::{connect_store, connect_store_lazy};
pub use login::{Credentials, CredentialsError, CredentialsFuture, CredentialsProvider};
pub use pool::RedisPool;
pub use script::Script;
pub use store::RedisStore;
