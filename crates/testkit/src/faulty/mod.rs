//! A store between a test and a real one, which loses, delays, repeats and fails commands.

mod answer;
mod command;
mod fault;
mod faulty_store;
mod gate;
mod kind;
mod letter;
mod lock_store;
mod log;
mod rule;

pub use answer::Answer;
pub use command::Command;
pub use fault::Fault;
pub use faulty_store::FaultyStore;
pub use gate::Gate;
pub use kind::CommandKind;
pub use log::{Delivery, Executed};
pub use rule::Rule;
