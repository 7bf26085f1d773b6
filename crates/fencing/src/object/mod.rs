//! The gate on an object store: its watermark in an object's metadata, and its conditional writes.

mod check;
mod failure;
mod gate;
mod metadata;

pub use gate::ObjectGate;
