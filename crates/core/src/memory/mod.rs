//! The embedded store: the rules of the scripts, in the memory of this process.

mod keyspace;
mod queue;
mod row;
mod rules;
mod store;
mod time;

pub use store::MemoryStore;
