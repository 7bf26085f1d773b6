//! Private servers, manual time, faults and checkers for the tests of Leasehold; never published.
//!
//! - [`RedisServer`] is a real server that a test starts for itself; [`ScriptedPeer`] imitates the
//!   servers that cannot be had here.
//! - [`RedisCluster`] is three masters that share the slots, with replicas or without.
//! - [`SentinelGroup`] is a master with replicas, and the Sentinels that choose the master.
//! - [`QuorumGroup`] is some servers that do not know each other; a [`QuorumNetwork`] cuts one client
//!   off from some of them.
//! - [`PostgresServer`] is the same of PostgreSQL, from the programs of the system.
//! - [`ManualClock`] and [`SeededEntropy`] make a run replay exactly; [`Patience`] waits where only
//!   real time will do.
//! - [`FaultyStore`] fails, loses, delays and repeats the commands of any store.
//! - [`WrongStore`] makes a wrong runtime of a right one; [`WrongServer`] is a server that makes
//!   one [`Mistake`].
//! - [`FaultProxy`] does that to the messages between real servers and real clients.
//! - [`History`] records what workers saw and checks it; [`Log`] collects what is logged.
//! - [`LockText`] is what a server keeps of a lock.
//! - [`ChildProcess`] is another process that a test stops, continues and kills; [`ClockShim`]
//!   moves the time of day of such a process.

mod child;
pub mod cluster;
pub mod contract;
mod entropy;
pub mod faulty;
mod folder;
pub mod gates;
mod guardian;
pub mod history;
mod launched;
mod lock_text;
mod log;
mod patience;
pub mod peer;
pub mod postgres;
mod process;
pub mod proxy;
pub mod quorum;
pub mod sentinel;
pub mod server;
mod shim;
pub mod sim;
mod wrong;
mod wrong_server;

pub use child::{ChildProcess, resident};
pub use cluster::RedisCluster;
pub use entropy::SeededEntropy;
pub use faulty::{CommandKind, Fault, FaultyStore, Gate, Rule};
pub use history::{Event, History, Violation};
pub use leasehold_testing::ManualClock;
pub use lock_text::{LeaseText, LockText};
pub use log::Log;
pub use patience::Patience;
pub use peer::{Reply, ScriptedPeer};
pub use postgres::PostgresServer;
pub use proxy::{FaultProxy, script_of_commands};
pub use quorum::{QuorumGroup, QuorumNetwork};
pub use sentinel::SentinelGroup;
pub use server::{RedisServer, ServerVersion};
pub use shim::{ClockShim, ForkShim};
pub use wrong::{Wrong, WrongStore};
pub use wrong_server::{Mistake, WrongServer};
