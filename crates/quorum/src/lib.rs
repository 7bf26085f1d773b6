//! Leases on several independent masters: a lease is believed after a majority granted it.
//!
//! The rules are pure functions of what the nodes have told. [`QuorumStore`] drives them over any kind
//! of [`QuorumNode`]; [`RedisNode`] is one, a Redis server with connections of its own.

mod acquire;
mod claims;
mod driver;
mod durations;
mod failure;
mod inspect;
mod lease;
mod missed;
mod node;
mod pushes;
mod records;
mod round;
mod rules;
mod state;
mod store;
mod tally;
#[cfg(test)]
#[path = "../../redis/src/tests/values.rs"]
#[expect(dead_code, reason = "the answers of scripts are enough here")]
mod values;
mod vote;

pub use driver::{RedisNode, connect_quorum, init_quorum, lazy_quorum};
pub use node::{Busy, NodeAnswer, NodeCommand, NodeLease, NodeReply, QuorumNode, Vote, Word};
pub use rules::QuorumRules;
pub use store::QuorumStore;
pub use tally::{Decision, FenceVerdict, VoteCount, majority};
