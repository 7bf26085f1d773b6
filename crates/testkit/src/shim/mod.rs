//! Libraries that are preloaded into other processes: to move their time of day, and to fork them.

mod clock_shim;
mod fork_shim;
mod library;

pub use clock_shim::ClockShim;
pub use fork_shim::ForkShim;
