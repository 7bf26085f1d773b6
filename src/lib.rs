#![doc = include_str!("guide/links.md")]
#![cfg_attr(doc, doc = include_str!("guide/pictures.md"))]
#![doc = include_str!("../README.md")]
#![doc(test(attr(deny(unused_imports, unused_must_use, unused_mut))))]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod diagnosis;
pub mod error;
pub mod fencing;
pub mod graph;
#[cfg(doc)]
pub mod guide;
pub mod metric;
pub mod once;
pub mod redis;
mod runtime;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;

#[doc(no_inline)]
pub use diagnosis::{Diagnosis, Strictness};
pub use leasehold_core::{
    AcquisitionId, Fence, LockName, NamePattern, RuntimeId, Stamp,
    lease::{LeaseEnd, LeaseState, LossReason},
};
#[doc(hidden)]
pub use leasehold_core::{Ttl, duration, is_printable, lease::HeardEnd, printable};
pub use leasehold_reentrant_lock::{
    Acquire, AcquireAll, AllGuard, AllLeases, AllLocks, Footprint, Guard, Health, HolderInfo,
    Lease, ListedLock, LockList, Owner, QueuePosition, ReadGuard, ReadLease, ReentrantLock,
    Released, RwLock, ShutdownReport,
};
pub use leasehold_watchdog::Lost;
#[doc(hidden)]
pub use runtime::connect_store;
pub use runtime::{ForceReleased, LockRuntime, LockRuntimeBuilder, Settings};
