//! Several locks at once: all or nothing, in one order for everybody.

mod guard;
mod locks;

pub use guard::{AllGuard, AllLeases};
pub use locks::{AcquireAll, AllLocks};
