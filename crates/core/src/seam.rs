//! For the tests of Leasehold: what of the embedded store they can lose and copy.
//!
//! Not part of the public interface.

pub use crate::memory::{Copied, Part};
