//! One error for each operation; every one says what happened, to which lock, and what to do.
//!
//! The text of an error has its cause in it, and `source()` gives nothing that stands in the text.
//! Printing both repeats nothing.

mod acquire;
mod lost;
mod options;
mod reenter;
mod release;
mod run_once;
mod self_wait;
mod succeed;
#[cfg(test)]
mod tests;
mod timeout;
mod unavailable;
mod with;

pub use acquire::AcquireError;
pub use lost::LeaseLost;
pub use options::OptionsError;
pub use reenter::ReenterError;
pub use release::ReleaseError;
pub use run_once::RunOnceError;
pub use self_wait::SelfWait;
pub use succeed::SucceedError;
pub use timeout::{HolderInfo, QueuePosition, WaitTimeout};
pub use unavailable::Unavailable;
pub use with::WithError;
