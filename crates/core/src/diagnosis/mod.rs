//! What may keep a server from what Leasehold promises: findings, and the rules that make them.
//!
//! The rules are functions of facts that were gathered before. They ask no server.

mod clock_offset;
mod examined;
mod expected;
pub(crate) mod facts;
mod finding;
mod promise;
mod report;
mod rules;
mod severity;
mod topic;

pub use clock_offset::ClockOffset;
pub use examined::ExaminedServer;
pub use expected::Expected;
pub use finding::Finding;
pub use promise::Promise;
pub use report::Diagnosis;
pub use severity::Severity;
pub use topic::Topic;
