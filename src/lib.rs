#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod fencing;
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

/// The code of the guides compiles.
#[cfg(doctest)]
mod guides {
    #[cfg(feature = "tower")]
    #[doc = include_str!("../docs/guides/http.md")]
    mod http {}
    #[cfg(feature = "object-store")]
    #[doc = include_str!("../docs/guides/object-store.md")]
    mod object_store {}
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../docs/guides/postgres.md")]
    mod postgres {}
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../docs/guides/flash-sale.md")]
    mod flash_sale {}
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../docs/guides/orders-in-sequence.md")]
    mod orders_in_sequence {}
    #[doc = include_str!("../docs/guides/duplicate-submission.md")]
    mod duplicate_submission {}
    #[doc = include_str!("../docs/guides/leader.md")]
    mod leader {}
    #[doc = include_str!("../docs/guides/scheduled-jobs.md")]
    mod scheduled_jobs {}
}
