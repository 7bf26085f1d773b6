//! Jobs that run once in a window of time. If the holder of one dies, another process begins it anew.
//!
//! [`LockRuntime::once`](crate::LockRuntime::once) begins one.

pub use leasehold_reentrant_lock::{Begun, Duplicate, Once, OnceGuard, OnceOutcome, Progress};
