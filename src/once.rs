//! Jobs that run once in a window of time, also when their holder dies.
//!
//! [`LockRuntime::once`](crate::LockRuntime::once) begins one.

pub use leasehold_reentrant_lock::{Begun, Duplicate, Once, OnceGuard, OnceOutcome, Progress};
