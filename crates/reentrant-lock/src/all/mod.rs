//! Several locks at once: all or nothing, in one order for everybody.

mod acquire;
mod guard;
mod leases;
mod locks;
mod taking;

pub use acquire::AcquireAll;
pub use guard::AllGuard;
pub use leases::AllLeases;
pub use locks::AllLocks;
