use std::time::Duration;

use super::{redis_server::RedisServer, replication::Replication};
use crate::patience::Patience;

/// How long a server has until it follows another.
const LIMIT: Duration = Duration::from_secs(30);

/// A replica and its master.
impl RedisServer {
    /// Makes the server a replica of another one, and returns when it has what that one has.
    ///
    /// # Panics
    ///
    /// Panics if the other one has no port, or that takes longer than thirty seconds.
    pub fn follow(&self, master: &Self) {
        let port = master.port().expect("a master has a port").to_string();
        self.command(&["REPLICAOF", "127.0.0.1", &port]);
        let follows = || Replication::of(self).is_in_sync().then_some(());
        Patience::of(LIMIT).until(follows).expect("the server follows its master");
    }

    /// Cuts a replica off: it stays a replica, and hears of nothing until [`rejoin`](Self::rejoin).
    ///
    /// It shows its master a password, and the master has none.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does.
    pub fn cut_off(&self) {
        self.command(&["CONFIG", "SET", "masterauth", "unknown"]);
        self.command(&["CLIENT", "KILL", "TYPE", "master"]);
    }

    /// Lets a replica hear of its master again, whichever that is now.
    ///
    /// # Panics
    ///
    /// Panics as [`command`](Self::command) does.
    pub fn rejoin(&self) {
        self.command(&["CONFIG", "SET", "masterauth", ""]);
    }

    /// Whether the server answers, and is a master by its own account.
    pub fn is_master(&self) -> bool {
        Replication::of(self).is_master()
    }
}
