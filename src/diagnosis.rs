//! What may keep a server from what Leasehold promises: settings, rights, clocks, replicas.
//!
//! [`LockRuntime::diagnose`](crate::LockRuntime::diagnose) examines the servers of a runtime.
//! [`LockRuntimeBuilder::connect`](crate::LockRuntimeBuilder::connect) does so, too, and logs what
//! it finds; its [`Strictness`] can make it refuse such servers.
//!
//! ```no_run
//! # async fn example(locks: leasehold::LockRuntime) {
//! use leasehold::diagnosis::Severity;
//!
//! let diagnosis = locks.diagnose().await;
//! println!("{diagnosis}");
//! if diagnosis.worst() >= Some(Severity::Danger) {
//!     // Tell an operator.
//! }
//! # }
//! ```

pub use leasehold_doctor::{
    ClockOffset, Diagnosis, ExaminedServer, Finding, Promise, Severity, Topic,
};

pub use crate::runtime::Strictness;
