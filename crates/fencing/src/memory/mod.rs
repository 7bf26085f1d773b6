//! The gate in the memory of a process: its watermarks, and who waits at them.

mod gate;
mod watermark;

pub use gate::MemoryGate;
