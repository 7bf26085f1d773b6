//! Leases on several independent masters: a lease is believed after a majority granted it.
//!
//! The rules are pure functions of what the nodes have told. [`QuorumStore`] drives them over any kind
//! of [`QuorumNode`].

mod acquire;
mod ballot;
mod claims;
mod command;
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
mod settings;
mod state;
mod store;
mod tally;
mod vote;

pub use ballot::FenceVerdict;
pub use command::{Busy, NodeAnswer, NodeCommand, NodeLease, NodeReply, Vote, Word};
pub(crate) use failure::{no_replicas, not_served};
pub use node::QuorumNode;
pub use rules::QuorumRules;
pub use settings::QuorumSettings;
pub use store::{QuorumParts, QuorumStore};
pub use tally::{Decision, VoteCount, majority};
