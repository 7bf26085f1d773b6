//! The nodes of a quorum: independent masters, each with connections of its own.

mod boot;
mod connect;
mod dialect;
mod init;
mod node;
mod scripts;

pub use connect::{connect_quorum, lazy_quorum};
pub use init::init_quorum;
pub use node::RedisNode;
