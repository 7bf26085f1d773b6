//! For tests of code that uses locks: a clock that a test moves, and a store that fails on demand.

mod clock;
mod store;

pub use clock::ManualClock;
pub use store::{Failure, TestStore};
