//! Servers that do not know each other, of which most have to agree, and the networks of their
//! clients.

mod builder;
mod network;
mod quorum_group;

pub use builder::QuorumBuilder;
pub use network::QuorumNetwork;
pub use quorum_group::QuorumGroup;
