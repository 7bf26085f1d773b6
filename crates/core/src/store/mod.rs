//! The contract between the runtime and whatever keeps the leases.

mod answers;
mod commands;
mod error;
mod keys;
mod lock_store;
mod record;
mod settings;

pub use answers::{
    AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, ReleaseAnswer, RenewAnswer,
    WithdrawAnswer,
};
pub(crate) use commands::whole_millis;
pub use commands::{Acquire, ForceRelease, Hold, Release, Renewal, Withdraw};
pub use error::{StoreError, StoreErrorKind};
pub use keys::KeyScheme;
pub use lock_store::{LockStore, StoreFuture};
pub use record::{Inspection, LeaseRecord};
pub use settings::{FencePolicy, FenceSettings, RetentionError};
