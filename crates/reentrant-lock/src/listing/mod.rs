//! The locks of a namespace that somebody holds, one after the other.

mod error;
mod list;
mod walk;

pub use error::ListError;
pub use list::{ListedLock, LockList};
