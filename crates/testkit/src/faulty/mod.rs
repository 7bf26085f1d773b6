//! A store between a test and a real one, which loses, delays, repeats and fails commands, and
//! what the store tells unasked.

mod facts;
mod fault;
mod faulty_store;
mod gate;
mod kind;
mod letter;
mod log;
mod pushes;
mod rule;

pub use facts::CommandFacts;
pub use fault::{Fault, PushFault};
pub use faulty_store::FaultyStore;
pub use gate::Gate;
pub use kind::CommandKind;
pub use log::{Delivery, Executed};
pub use rule::{PushRule, Rule};
