//! Leases on several independent masters: a lease is believed after a majority granted it.
//!
//! The rules are pure functions of what the nodes have told. [`QuorumStore`] drives them over any kind
//! of [`QuorumNode`].

mod attempt;
mod ballot;
mod command;
mod ear;
mod ending;
mod failure;
mod health;
mod holding;
mod insisting;
mod looking;
mod node;
mod record;
mod renewing;
mod round;
mod rules;
mod scanning;
mod sending;
mod settings;
mod settling;
mod store;
mod taking_back;
mod tally;
mod times;
mod under_way;
mod waiting;

pub use ballot::{Block, Fence, ballot, block, fence};
pub use command::{Busy, Lease, NodeAnswer, NodeCommand, NodeWaiter, Vote, Word};
pub use health::order;
pub use node::QuorumNode;
pub use rules::QuorumRules;
pub use settings::QuorumSettings;
pub use store::{QuorumParts, QuorumStore};
pub use tally::{Tally, Verdict, kth_longest, majority};
