//! The stores of Leasehold on Redis: addresses, connections, batches, scripts, and what failures
//! mean. Use the `leasehold` crate; this one is a part of it.
//!
//! - [`RedisAddress`] and [`RedisConfig`] say where a server is, and how to reach it.
//! - [`RedisStore`] keeps leases on one master, alone or with Sentinels; [`ClusterStore`] on the
//!   masters of a Cluster.
//! - [`Dialer`] makes a connection, [`Connection`] replaces one that fails, and [`Batcher`] sends
//!   commands of one moment together. [`Subscriptions`] bring what is published.
//! - [`RedisPool`] has connections for gates and for what is seldom asked.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod acknowledge;
mod address;
mod batcher;
mod channel;
pub mod classify;
mod cluster;
mod command;
mod config;
mod connection;
mod connections;
mod credentials;
pub mod decode;
mod dialect;
mod dialer;
mod durations;
mod endpoint;
mod liveness;
mod login;
mod needed;
mod not_dialed;
mod one_master;
mod parts;
mod pool;
mod readiness;
mod role;
mod route;
mod scan;
mod script;
mod scripts;
#[doc(hidden)]
pub mod seam;
mod sentinel;
mod shared_calls;
mod store;
mod subscriber;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
mod without_tls;

#[cfg(not(feature = "tls"))]
use without_tls as tls;

// The libraries whose values appear in this API.
#[cfg(feature = "deadpool")]
pub use ::deadpool_redis;
pub use ::redis as redis_client;
pub use acknowledge::Answered;
pub use address::{AddressError, AddressPart, RedisAddress, SentinelGroup};
pub use batcher::{Batcher, MAX_COMMANDS};
pub use cluster::{
    ClusterMaster, ClusterStore, JOIN, ONE_EACH, masters, probe_in, shared, slot_of, slot_of_lock,
};
pub use config::RedisConfig;
pub use connection::{Connection, Greeted, Greeting};
pub use connections::connection_number;
pub use credentials::{Credentials, CredentialsError, CredentialsFuture, CredentialsProvider};
pub use dialect::Dialect;
pub use dialer::{Dialer, dial_once};
pub use endpoint::Endpoint;
pub use needed::{needed, not_run};
pub use one_master::{ONE_ADDRESS, run_in};
pub use parts::{in_order, parts};
pub use pool::RedisPool;
pub use readiness::preflight;
pub use role::hello;
pub use scan::scan_step;
pub use script::{Script, ScriptCall, evaluate, millis};
pub use sentinel::{
    DISAGREEING, MasterVerdict, NAMED_MASTER, UNKNOWN_NAME, connect_to, decide, of_named_master,
    unreachable_one,
};
pub use store::{RedisStore, probe};
pub use subscriber::{NOT_SUBSCRIBED, NextDialer, Subscriptions};
#[cfg(feature = "tls")]
pub use tls::Pem;
