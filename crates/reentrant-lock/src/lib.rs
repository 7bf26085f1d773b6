//! The reentrant lock of Leasehold: guards, owners, bounded waits, cleanup that survives
//! cancellation. Use the `leasehold` crate; this one is a part of it.
//!
//! - [`ReentrantLock`] is a lock by name; [`Acquire`] says how to wait for it.
//! - [`RwLock`] is a lock that many may read; [`ReadGuard`] is one who does.
//! - [`AllLocks`] are several locks that are taken together.
//! - [`Guard`] is one hold of a lease; [`Lease`] is a view of it for others to watch.
//! - [`LockList`] tells who holds which locks, and who waits.
//! - [`Once`] is work that is done once, by the first caller.
//! - [`Owner`] may re-enter what it holds.
//! - [`Engine`] is what the locks of one runtime share.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod acquire;
mod all;
mod durations;
mod engine;
mod error;
mod graph;
mod guard;
mod lease;
mod listing;
mod lock;
mod once;
mod owner;
mod queue;
mod read_guard;
mod reports;
mod rw_lock;
#[doc(hidden)]
pub mod seam;
mod spans;
mod timing;
mod wait;

pub use acquire::Acquire;
pub use all::{AcquireAll, AllGuard, AllLeases, AllLocks};
pub use engine::{Engine, EngineParts, Executor, Footprint, Health, ShutdownReport};
pub use error::{
    AcquireError, HolderInfo, LeaseLost, OptionsError, QueuePosition, ReenterError, ReleaseError,
    SelfWait, Unavailable, WaitTimeout, WithError,
};
pub use graph::{Certainty, Cycle, CycleStep, Hold, Process, Wait, WaitGraph};
#[doc(hidden)]
pub use guard::AcquiredGuard;
pub use guard::{Guard, Released};
pub use lease::Lease;
pub use listing::{ListError, ListedLock, LockList};
#[doc(hidden)]
pub use lock::IsSetOnAcquire;
pub use lock::ReentrantLock;
pub use once::{Begun, Duplicate, Once, OnceGuard, OnceOutcome, Progress};
pub use owner::Owner;
pub use read_guard::{ReadGuard, ReadLease};
pub use rw_lock::RwLock;
pub use timing::Timing;
