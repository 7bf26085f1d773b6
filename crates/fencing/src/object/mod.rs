//! The gate on an object store: what it keeps in an object's metadata, and how it writes.

mod check;
mod failure;
mod gate;
mod look;
mod metadata;

pub use gate::ObjectGate;
