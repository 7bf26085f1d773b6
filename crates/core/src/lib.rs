//! The types and rules of Leasehold, and the store in memory. Use the `leasehold` crate, which
//! re-exports what users need.
//!
//! - [`LockName`], [`Fence`], [`Ttl`] and the other types validate once, when they are made.
//! - [`lease`] holds the rules of a lease, pure functions of state, time and event.
//! - [`LockStore`] is the contract that every store keeps; [`MemoryStore`] is the one in memory.
//! - [`outage`] knows whether the server answers, from every command of a runtime.
//! - [`Clock`] and [`Entropy`] are the only sources of time and randomness.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod clock;
mod durations;
mod entropy;
pub mod lease;
mod memory;
pub mod metric;
mod mutex;
pub mod outage;
mod process;
#[doc(hidden)]
pub mod seam;
pub mod store;
mod types;

pub use backoff::backoff;
pub use clock::{
    Clock, Instant, Sleep, SystemClock, TokioClock, has_timers, runs, sleep_until_some, within,
};
pub use durations::{
    LONGEST_NAP, LOOK, RETRY_LATER, RETRY_SOON, SHORTEST_SILENCE, STOOD_STILL, WITHDRAWAL_MARK,
};
pub use entropy::{Entropy, Secret, SystemEntropy};
pub use memory::MemoryStore;
pub use mutex::Mutex;
pub use process::{AtHome, Origin};
pub use store::{
    FencePolicy, FenceSettings, LockStore, QuorumSettings, StoreError, StoreErrorKind,
};
pub use types::{
    AcquisitionId, AcquisitionIdError, Class, Fence, FenceError, KnownHash, LockName, Mode,
    NameError, NameMap, NamePattern, Namespace, Replication, RuntimeId, RuntimeLabel, SettingError,
    Stamp, StampError, Terms, Ttl, duration, is_printable, printable, without_words,
};
