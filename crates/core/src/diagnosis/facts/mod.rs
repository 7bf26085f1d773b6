//! What servers and Sentinels have told, before anybody judges it.

mod group;
mod reading;
mod server;
mod told;

pub(crate) use group::{Group, SentinelFacts, SentinelTold, Watched};
pub(crate) use reading::{NotRead, Reading};
pub(crate) use server::{Facts, ServerFacts, Topology};
pub(crate) use told::{Info, Mark, Node, Settings, Timing, Told, Version};
