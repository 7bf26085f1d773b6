//! The gate in the memory of a process: its watermarks, and the admissions that wait for them.

mod gate;
mod watermark;

pub use gate::MemoryGate;
