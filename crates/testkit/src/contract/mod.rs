//! What every store must do, as one suite: the cases are the same, only the subjects differ.
//!
//! A [`StoreUnderTest`] is a store and what can be done to it; a [`Scene`] is a subject with the
//! words of one case; [`Calls`] are those of any test. [`contract_suite!`](crate::contract_suite)
//! makes a test of every case for a subject, [`CASES`] lists them with the capabilities that they
//! need.

mod calls;
mod cases;
mod copied;
mod keyspace;
mod memory;
mod push_log;
mod scene;
mod scene_queue;
mod servers;
mod subject;
mod table;
mod words;

pub use calls::Calls;
pub use copied::Copied;
pub use keyspace::Layout;
pub use memory::MemorySubject;
pub use push_log::PushLog;
pub use scene::Scene;
pub use servers::{
    Cluster, ClusterSubject, OwnServer, Quorum, QuorumOfFive, QuorumOfThree, RedisSubject,
    SentinelSubject, Sentinels, ServerSubject, Site,
};
pub use subject::{Capability, Snapshot, StoreUnderTest, Task};
pub use table::{CASES, Case, RETENTION, RETENTION_OF_JOBS, run};
pub use words::{alice, bob, carol, secs, ttl};
