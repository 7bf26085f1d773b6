//! The contract between a runtime and the store of its leases.

mod answers;
mod bounded;
mod command;
mod error;
mod keys;
mod lock_store;
mod quorum_settings;
mod scan;
mod settings;

pub use answers::{
    AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, Inspection, LeaseRecord, Listener,
    Place, Push, ReleaseAnswer, RenewAnswer, WaiterRecord, WithdrawAnswer,
};
pub use bounded::BoundedStore;
pub(crate) use command::whole_millis;
pub use command::{
    Acquire, Command, ForceRelease, Heartbeat, Heartbeats, Hold, Inspect, Next, Release, Renewal,
    Renewals, Reply, Request, Waiter, Withdraw,
};
pub use error::{StoreError, StoreErrorKind};
pub use keys::KeyScheme;
pub use lock_store::{Ask, LockStore, StoreFuture, of_its_kind, only};
pub use quorum_settings::QuorumSettings;
pub use scan::{Scan, ScanCursor, ScanPage};
pub use settings::{FencePolicy, FenceSettings};
