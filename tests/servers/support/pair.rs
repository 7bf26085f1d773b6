//! A master, its replica, and an address that leads to the one or the other.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use leasehold_testkit::{ClockShim, RedisServer, server::RedisServerBuilder};

pub(crate) struct Pair {
    pub(crate) master: RedisServer,
    pub(crate) replica: RedisServer,
    address: PathBuf,
}

impl Pair {
    /// Two servers that have the same data, and the right time.
    pub(crate) fn start() -> Self {
        Self::of(builder(), builder())
    }

    /// Two servers, of which the replica has the time of a shim.
    pub(crate) fn with_clock(replica: &ClockShim) -> Self {
        Self::of(builder(), builder().clock(replica))
    }

    fn of(master: RedisServerBuilder, replica: RedisServerBuilder) -> Self {
        let (master, replica) = (master.start(), replica.start());
        replica.follow(&master);
        let address = master.socket().with_file_name("address");
        symlink(master.socket(), &address).expect("a link");
        Self { master, replica, address }
    }

    /// The address, which leads to the master.
    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.address.display())
    }

    /// Makes the replica a master: it hears no more of what is written at the old one.
    pub(crate) fn promote(&self) {
        self.replica.command(&["REPLICAOF", "NO", "ONE"]);
    }

    /// Promotes the replica and demotes the master, which goes on answering.
    pub(crate) fn swap(&self) {
        self.promote();
        self.master.follow(&self.replica);
    }

    /// The address leads to the new master.
    pub(crate) fn announce(&self) {
        fs::remove_file(&self.address).expect("a link");
        symlink(self.replica.socket(), &self.address).expect("a link");
    }
}

fn builder() -> RedisServerBuilder {
    RedisServer::builder().tcp().arg("repl-diskless-sync-delay", "0")
}
