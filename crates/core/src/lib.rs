//! The types, rules, stores and scripts of Leasehold. Use the `leasehold` crate, which re-exports
//! what users need.
//!
//! - [`LockName`], [`Fence`], [`Ttl`] and the other types validate once, when they are made.
//! - [`lease`] holds the rules of a lease, pure functions of state, time and event.
//! - [`LockStore`] is the contract that [`RedisStore`] and [`MemoryStore`] keep.
//! - [`outage`] knows whether the server answers, from every command of a runtime.
//! - [`diagnosis`] says what may keep a server from what Leasehold promises; an [`Examiner`] asks.
//! - [`Clock`] and [`Entropy`] are the only sources of time and randomness.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod clock;
pub mod diagnosis;
mod durations;
mod entropy;
pub mod lease;
mod memory;
pub mod metric;
mod mutex;
pub mod outage;
mod process;
#[doc(hidden)]
pub mod quorum;
mod redis;
#[doc(hidden)]
pub mod seam;
pub mod store;
mod types;

// The libraries whose values appear in this API.
#[cfg(feature = "deadpool")]
pub use ::deadpool_redis;
pub use ::redis as redis_client;
pub use backoff::backoff;
pub use clock::{Clock, Instant, Sleep, SystemClock};
pub use durations::{LONGEST_NAP, SHORTEST_SILENCE};
pub use entropy::{Entropy, Secret, SystemEntropy};
pub use memory::MemoryStore;
pub use mutex::Mutex;
pub use process::{AtHome, Origin};
pub use quorum::QuorumSettings;
pub use redis::{
    AddressError, AddressPart, ClusterStore, Credentials, CredentialsError, CredentialsFuture,
    CredentialsProvider, Examiner, RedisAddress, RedisConfig, RedisPool, RedisStore, Script,
    connect_store, connect_store_lazy,
};
pub use store::{FencePolicy, FenceSettings, LockStore, StoreError, StoreErrorKind};
pub use types::{
    AcquisitionId, AcquisitionIdError, Class, Fence, FenceError, KnownHash, LockName, NameError,
    NameMap, NamePattern, Namespace, Replication, RuntimeId, RuntimeLabel, SettingError, Stamp,
    StampError, Terms, Ttl, is_printable, printable,
};
