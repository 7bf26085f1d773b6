//! Several independent servers, each with a clock of its own, and processes that ask them.

mod net;
mod node;
mod world;

pub use net::{Gale, NodeMistake};
pub use node::SimNode;
pub use world::QuorumWorld;
