//! The contract between a runtime and the store of its leases.

mod answers;
mod error;
mod keys;
mod lock_store;
mod scan;
mod settings;

pub use answers::{
    AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, Inspection, LeaseRecord, Listener,
    Place, Push, ReleaseAnswer, RenewAnswer, WaiterRecord, WithdrawAnswer,
};
pub use error::{StoreError, StoreErrorKind};
pub use keys::KeyScheme;
pub use lock_store::{
    Acquire, ForceRelease, Heartbeat, Hold, LockStore, Next, Release, Renewal, StoreFuture, Waiter,
    Withdraw,
};
pub(crate) use lock_store::{WITHDRAWAL_MARK, whole_millis};
pub use scan::{Scan, ScanCursor, ScanPage};
pub use settings::{FencePolicy, FenceSettings};
