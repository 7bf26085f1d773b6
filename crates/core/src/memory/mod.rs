//! The embedded store: the rules of the scripts, in the memory of this process.

mod row;
mod rules;
mod store;

pub use row::Part;
pub use store::{Copied, MemoryStore};
