//! A store between a test and a real one, which loses, delays, repeats and fails commands, and
//! what the store tells unasked.

mod facts;
mod fault;
mod faulty_store;
mod gate;
mod kind;
mod letter;
mod log;
mod push_rule;
mod pushes;
mod rule;

pub use facts::CommandFacts;
pub use fault::Fault;
pub use faulty_store::FaultyStore;
pub use gate::Gate;
pub use kind::CommandKind;
pub use log::{Delivery, Executed};
pub use push_rule::{PushFault, PushRule};
pub use rule::Rule;
