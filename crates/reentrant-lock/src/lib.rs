//! The reentrant lock of Leasehold: guards, owners, bounded waits, cleanup that survives
//! cancellation. Use the `leasehold` crate; this one is a part of it.
//!
//! - [`ReentrantLock`] is a lock by name; [`Acquire`] says how to wait for it.
//! - [`Guard`] is one hold of a lease; [`Lease`] is a view of it for others to watch.
//! - [`Once`] is something to be done once, by whoever comes first.
//! - [`Owner`] may re-enter what it holds.
//! - [`Engine`] is what the locks of one runtime share.

mod acquire;
mod blocked;
mod caller;
mod closing;
mod cohort;
mod driver;
mod endurance;
mod engine;
mod error;
mod guard;
mod held;
mod lease;
mod lock;
mod once;
mod owner;
mod released;
#[doc(hidden)]
pub mod seam;
mod suspicion;
mod wait;
mod with;

pub use acquire::Acquire;
pub use engine::{Engine, EngineParts, Executor, Footprint, ShutdownReport, Timing, TimingError};
pub use error::{
    AcquireError, HolderInfo, OptionsError, QueuePosition, ReenterError, ReleaseError,
    RunOnceError, SelfWait, SucceedError, Unavailable, WaitTimeout, WithError,
};
pub use guard::Guard;
pub use lease::Lease;
pub use lock::ReentrantLock;
pub use once::{Begun, Duplicate, Once, OnceGuard, OnceOutcome, Progress};
pub use owner::Owner;
pub use released::Released;
