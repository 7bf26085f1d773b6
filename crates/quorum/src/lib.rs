//! Leases on several independent masters: a lease is believed after a majority granted it.
//!
//! The rules are pure functions of what the nodes have told. [`QuorumStore`] drives them over any kind
//! of [`QuorumNode`]; [`RedisNode`] is one, a Redis server with connections of its own.

mod acquire;
mod ballot;
mod claims;
mod command;
mod driver;
mod durations;
mod failure;
mod health;
mod hold;
mod inspect;
mod missed;
mod node;
mod nodes;
mod pushes;
mod records;
mod release;
mod renew;
mod round;
mod rules;
mod scan;
mod state;
mod store;
mod tally;
#[cfg(test)]
#[path = "../../redis/src/tests/values.rs"]
#[expect(dead_code, reason = "the answers of scripts are enough here")]
mod values;
mod vote;

pub use ballot::FenceVerdict;
pub use command::{Busy, NodeAnswer, NodeCommand, NodeLease, NodeReply, Vote, Word};
pub use driver::{RedisNode, connect_quorum, lazy_quorum};
pub use node::QuorumNode;
pub use rules::QuorumRules;
pub use store::{QuorumParts, QuorumStore};
pub use tally::{Decision, VoteCount, majority};
