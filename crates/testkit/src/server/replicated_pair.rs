use std::time::Duration;

use super::{redis_server::RedisServer, replication::Replication};
use crate::patience::Patience;

/// A master with one replica, both on free ports of 127.0.0.1, without anything that would promote
/// the replica.
#[derive(Debug)]
pub struct ReplicatedPair {
    /// The master.
    pub master: RedisServer,
    /// Its replica.
    pub replica: RedisServer,
}

impl ReplicatedPair {
    const LIMIT: Duration = Duration::from_secs(30);

    /// Starts both, and returns when the replica has what the master has.
    ///
    /// # Panics
    ///
    /// Panics if a process does not start, or the replica does not get what the master has.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with lines of configuration for both.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does.
    pub fn start_with(lines: &[(&str, &str)]) -> Self {
        let server = || {
            let server = RedisServer::builder().tcp().arg("repl-diskless-sync-delay", "0");
            lines.iter().fold(server, |server, (key, value)| server.arg(*key, *value))
        };
        let master = server().start();
        let replica = server().replica_of(&master).start();
        let pair = Self { master, replica };
        pair.wait_until_in_sync();
        pair
    }

    /// Returns when the replica has what the master has, and the master counts it.
    ///
    /// # Panics
    ///
    /// Panics if that takes longer than 30 s.
    pub fn wait_until_in_sync(&self) {
        let is_in_sync = || {
            let counts = Replication::of(&self.master).replicas() == 1;
            (counts && Replication::of(&self.replica).is_in_sync()).then_some(())
        };
        Patience::of(Self::LIMIT).until(is_in_sync).expect("the replica gets what the master has");
    }
}
