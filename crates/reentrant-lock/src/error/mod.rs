//! One error for each operation; every one says what happened, to which lock, and what to do.
//!
//! The text of an error has its cause in it, and `source()` gives nothing that stands in the text.
//! Printing both repeats nothing.

mod acquire;
mod answer;
mod lost;
#[cfg(test)]
mod tests;
mod timeout;

pub use acquire::{AcquireError, OptionsError, WithError};
pub use lost::{LeaseLost, ReenterError, ReleaseError};
pub use timeout::{HolderInfo, QueuePosition, SelfWait, Unavailable, WaitTimeout};
