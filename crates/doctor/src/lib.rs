//! What may keep a server from what Leasehold promises: findings, and the rules that make them.
//!
//! [`Examiner`] asks the servers for facts, each question with a deadline. The rules are functions of
//! these facts. Use the `leasehold` crate; this one is a part of it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod examine;
mod facts;
mod finding;
mod report;
mod rules;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "../../redis/src/tests/values.rs"]
#[expect(dead_code, reason = "the texts are enough here")]
mod values;

pub use examine::Examiner;
pub use facts::ClockOffset;
pub use finding::{Finding, Promise, Severity, Topic};
pub use report::{Diagnosis, ExaminedServer};
pub use rules::Expected;
