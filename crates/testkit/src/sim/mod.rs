//! A deterministic simulation: runtimes, a network and servers in virtual time, from one seed.
//!
//! - [`World`] holds it all, and lets it run on the calling thread.
//! - [`Line`] is a process's store: every command travels as a message, and [`Weather`] says what
//!   goes wrong on the way.
//! - [`Layout`] says which servers there are: one, a master with replicas and Sentinels, or a Cluster.
//!   [`Rules`] are the decisions by which a process finds the right one.
//! - [`Drift`] is how a process's clock runs beside the world's.
//! - [`Spy`] writes one history per name of what runtimes and the servers told each other.

mod acknowledging;
mod behind;
mod delivery;
mod dice;
mod drift;
mod failover;
mod line;
mod mishap;
mod network;
mod process;
mod quorum;
mod replication;
mod resharding;
mod route;
mod server;
mod servers;
mod spy;
mod stops;
mod trace;
mod weather;
mod world;

pub use dice::{Dice, Ppm};
pub use drift::Drift;
pub use failover::{Fall, Forsaken};
pub use line::Line;
pub use mishap::{Fate, Mishap, Strikes};
pub use quorum::{Gale, MemoryNode, NodeMistake, QuorumWorld, SimNode};
pub use route::Rules;
pub use server::Peek;
pub use servers::{Layout, Stranger};
pub use spy::Spy;
pub use stops::Stops;
pub use trace::{Step, Trace};
pub use weather::Weather;
pub use world::{Place, Post, World};
