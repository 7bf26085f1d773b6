//! A library that is preloaded into other processes, to move their time of day.

mod clock_shim;

pub use clock_shim::ClockShim;
