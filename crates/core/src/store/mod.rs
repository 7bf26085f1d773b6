//! The contract between the runtime and whatever keeps the leases.

mod answers;
mod commands;
mod error;
mod keys;
mod lock_store;
mod push;
mod record;
mod settings;

pub use answers::{
    AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, Place, ReleaseAnswer, RenewAnswer,
    WithdrawAnswer,
};
pub(crate) use commands::whole_millis;
pub use commands::{
    Acquire, ForceRelease, Heartbeat, Hold, Next, Release, Renewal, Waiter, Withdraw,
};
pub use error::{StoreError, StoreErrorKind};
pub use keys::KeyScheme;
pub use lock_store::{LockStore, StoreFuture};
pub use push::{Listener, Push};
pub use record::{Inspection, LeaseRecord, WaiterRecord};
pub use settings::{FencePolicy, FenceSettings};
