//! What may keep a server from what Leasehold promises: findings, and the rules that make them.
//!
//! The rules are functions of facts that were gathered before. They ask no server.

pub(crate) mod facts;
mod finding;
mod report;
mod rules;
#[cfg(test)]
mod tests;

pub use finding::{Finding, Promise, Severity, Topic};
pub use report::{ClockOffset, Diagnosis, ExaminedServer};
pub use rules::Expected;
