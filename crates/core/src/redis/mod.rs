//! The store on a Redis server: connections, scripts, and what their failures mean.

mod acknowledge;
mod address;
mod args;
mod batcher;
mod call;
mod channel;
mod classify;
mod cluster;
mod command;
mod config;
mod connect;
mod connection;
mod connections;
mod credentials;
mod decode;
mod delivery;
mod dialect;
mod dialer;
mod endpoint;
mod epochs;
mod examine;
#[cfg(test)]
mod fuzz;
mod heartbeat;
mod liveness;
mod login;
mod one_master;
mod pool;
mod preamble;
mod proof;
mod quorum;
mod readiness;
mod role;
mod route;
mod scan;
mod script;
mod scripts;
mod sending;
mod sentinel;
mod shared_calls;
mod store;
mod subscriber;
#[cfg(feature = "tls")]
mod tls;

pub use acknowledge::acknowledged;
pub use address::{AddressError, AddressPart, RedisAddress};
pub use cluster::{
    Choice, ClusterStore, Learnt, Probe, Redirect, RedirectPolicy, SlotOwners, View, choose,
    slot_of, slot_of_lock,
};
pub use config::RedisConfig;
pub use connect::{connect_store, connect_store_lazy};
pub use credentials::{Credentials, CredentialsError, CredentialsFuture, CredentialsProvider};
pub use endpoint::Endpoint;
pub use examine::Examiner;
pub(crate) use one_master::ONE_ADDRESS;
pub use pool::RedisPool;
pub use script::Script;
pub use sentinel::{FoundMaster, MasterVerdict, decide};
pub use store::RedisStore;
