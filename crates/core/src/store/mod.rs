//! The contract between a runtime and the store of its leases.

mod answers;
mod commands;
mod error;
mod keys;
mod lock_store;
mod settings;

pub use answers::{
    AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, Inspection, LeaseRecord, Listener,
    Place, Push, ReleaseAnswer, RenewAnswer, WaiterRecord, WithdrawAnswer,
};
pub use commands::{
    Acquire, ForceRelease, Heartbeat, Hold, Next, Release, Renewal, Waiter, Withdraw,
};
pub(crate) use commands::{WITHDRAWAL_MARK, whole_millis};
pub use error::{StoreError, StoreErrorKind};
pub use keys::KeyScheme;
pub use lock_store::{LockStore, StoreFuture};
pub use settings::{FencePolicy, FenceSettings};
