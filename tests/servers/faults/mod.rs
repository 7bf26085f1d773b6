//! The fault matrix: each file of a room is a row, with what is right when the fault strikes, and
//! what happens without the protection.
#![expect(clippy::disallowed_methods, reason = "real servers and processes take real time")]

mod clock;
mod data;
mod failover;
mod network;
mod process;
pub(crate) mod quorum;
mod server;
