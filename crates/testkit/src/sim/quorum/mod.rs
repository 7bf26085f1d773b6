//! Several independent servers, each with a clock of its own, and processes that ask them.

mod memory_node;
mod net;
mod node;
mod world;

pub use memory_node::{MemoryNode, NodeMistake};
pub use net::Gale;
pub use node::SimNode;
pub use world::QuorumWorld;
