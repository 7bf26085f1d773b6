//! The contract of a store, kept by each of them, with what is noticed when it is not.

mod cluster;
mod complete;
mod corrupt;
mod memory;
mod mutants;
mod quorum;
mod redis;
mod sentinel;
