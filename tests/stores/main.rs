//! The stores keep their contract, give the same answers, and do what is Redis' own.

mod contract;
mod differential;
mod mute;
mod patterns;
mod quorum_leases;
mod quorum_node;
mod redis;
mod retention;
