//! The embedded store: the rules of the scripts, in the memory of this process.

mod copied;
mod row;
mod rules;
mod store;

pub use copied::Copied;
pub use store::MemoryStore;
