//! What every store must do, as one suite: the cases are the same, only the subjects differ.
//!
//! A [`StoreUnderTest`] is a store and what can be done to it; a [`Scene`] is a subject with the
//! words of one case; [`Calls`] are those of any test. [`contract_suite!`](crate::contract_suite)
//! makes a test of every case for a subject, [`CASES`] lists them with the capabilities that they
//! need.

mod calls;
mod cases;
mod cluster;
mod copied;
mod keyspace;
mod memory;
mod nodespace;
mod push_log;
mod quorum;
mod redis;
mod scene;
mod scene_queue;
mod sentinel;
mod subject;
mod table;
mod words;

pub use calls::Calls;
pub use cluster::ClusterSubject;
pub use copied::Copied;
pub use memory::MemorySubject;
pub use push_log::PushLog;
pub use quorum::{QuorumOfFive, QuorumOfThree, QuorumSubject};
pub use redis::RedisSubject;
pub use scene::Scene;
pub use sentinel::SentinelSubject;
pub use subject::{Capability, Snapshot, StoreUnderTest, Task};
pub use table::{CASES, Case, RETENTION, run};
pub use words::{alice, bob, carol, secs, ttl};
