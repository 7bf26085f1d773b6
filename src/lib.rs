#![doc = include_str!("guide/links.md")]
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod fencing;
#[cfg(doc)]
pub mod guide;
pub mod metric;
mod runtime;

/// The pool of connections: a `Pool` of this version becomes a [`RedisPool`].
#[cfg(feature = "deadpool")]
pub use leasehold_core::deadpool_redis;
/// The client library of Redis: a `Client` or `ConnectionInfo` of this version is an address.
pub use leasehold_core::redis_client as redis;
pub use leasehold_core::{
    AcquisitionId, AddressError, AddressPart, Class, Clock, Credentials, CredentialsError,
    CredentialsFuture, CredentialsProvider, Entropy, FencePolicy, FenceSettings, FenceToken,
    FenceTokenError, Instant, LockName, LockStore, MemoryStore, NameError, Namespace, RedisAddress,
    RedisConfig, RedisPool, RedisStore, RuntimeId, RuntimeLabel, Script, SettingError, Stamp,
    StampError, StoreError, StoreErrorKind, SystemClock, SystemEntropy, Ttl,
    lease::{LeaseState, LossReason},
    store::{Inspection, LeaseRecord, WaiterRecord},
};
pub use leasehold_reentrant_lock::{
    Acquire, AcquireError, Begun, Duplicate, Footprint, Guard, HolderInfo, Lease, Once, OnceGuard,
    OnceOutcome, OptionsError, Owner, Progress, QueuePosition, ReenterError, ReentrantLock,
    ReleaseError, Released, RunOnceError, SelfWait, ShutdownReport, SucceedError, TimingError,
    Unavailable, WaitTimeout, WithError,
};
pub use leasehold_watchdog::{LeaseEnd, Lost};
pub use runtime::{ConnectError, ForceReleased, InspectError, LockRuntime, LockRuntimeBuilder};
