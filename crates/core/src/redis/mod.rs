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
mod credentials;
mod decode;
mod delivery;
mod dialect;
mod dialer;
mod epochs;
mod examine;
#[cfg(test)]
mod fuzz;
mod gathering;
mod heartbeat;
mod lane;
mod login;
mod one_master;
mod place;
mod pool;
mod preamble;
mod proof;
mod pulse;
mod quorum;
mod readiness;
mod renewing;
mod role;
mod route;
mod scan;
mod script;
mod scripts;
mod sending;
mod sentinel;
mod sharing;
mod store;
mod subscriber;
#[cfg(feature = "tls")]
mod tls;
mod waiting;

pub use acknowledge::acknowledged;
pub use address::{AddressError, AddressPart, RedisAddress};
pub use cluster::{
    Choice, ClusterStore, Course, Learnt, Look, Owners, Redirect, View, choose, slot_of,
    slot_of_lock,
};
pub use config::RedisConfig;
pub use connect::{connect_store, connect_store_lazy};
pub use credentials::{Credentials, CredentialsError, CredentialsFuture, CredentialsProvider};
pub use examine::Examiner;
pub(crate) use one_master::ONE_ADDRESS;
pub use place::Place;
pub use pool::RedisPool;
pub use script::Script;
pub use sentinel::{Found, Verdict, decide};
pub use store::RedisStore;
