//! Who waits for whom, as data: made by [`LockRuntime::wait_graph`](crate::LockRuntime::wait_graph).

pub use leasehold_reentrant_lock::{Certainty, Cycle, CycleStep, Hold, Process, Wait, WaitGraph};
