//! Every error of this library: what happened, to which lock, and what to do next.
//!
//! A call on a lock fails with an error of its own, so a `match` shows what that call can meet.
//! Four facts are kept apart everywhere: the lock is busy ([`WaitTimeout`]), the server does not
//! answer ([`Unavailable`]), the lease is lost ([`LeaseLost`]), and the outcome is not known.

pub use leasehold_core::{
    FenceError, NameError, SettingError, StampError, StoreError, StoreErrorKind,
};
pub use leasehold_redis::{AddressError, AddressPart};
pub use leasehold_reentrant_lock::{
    AcquireError, LeaseLost, ListError, OptionsError, ReenterError, ReleaseError, SelfWait,
    Unavailable, WaitTimeout, WithError,
};

pub use crate::runtime::{ConnectError, InspectError, SettingsError};
