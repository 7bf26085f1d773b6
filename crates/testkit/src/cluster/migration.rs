use redis::Value;

use super::{redis_cluster::RedisCluster, view::owns};
use crate::{Patience, RedisServer};

/// How many keys move with one command.
const STEP: &str = "100";

/// How long a command that moves keys may take, in milliseconds.
const TIMEOUT: &str = "5000";

/// Slots that move from one master to another, without replicas.
impl RedisCluster {
    /// Moves a slot with its keys to the master of a number, or to the one that owns none.
    ///
    /// # Panics
    ///
    /// Panics as the three steps do.
    pub fn migrate(&self, slot: u16, to: usize) {
        self.begin_migration(slot, to);
        self.move_keys(slot);
        self.end_migration(slot);
    }

    /// Begins to move a slot: what its owner does not have any more, it asks the other one for.
    ///
    /// # Panics
    ///
    /// Panics if the slot has no owner, or belongs to the master of that number already.
    pub fn begin_migration(&self, slot: u16, to: usize) {
        let (from, to, slot) = (self.source(slot), &self.servers()[to], slot.to_string());
        to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    }

    /// Moves all keys of a slot that is on its way.
    ///
    /// # Panics
    ///
    /// Panics if the slot is not on its way.
    pub fn move_keys(&self, slot: u16) {
        let (from, to) = (self.source(slot), self.target(slot));
        let (port, slot) = (to.port().expect("a node has a port").to_string(), slot.to_string());
        loop {
            let keys: Vec<String> = from.query(&["CLUSTER", "GETKEYSINSLOT", &slot, STEP]);
            if keys.is_empty() {
                return;
            }
            let fixed = ["MIGRATE", "127.0.0.1", &port, "", "0", TIMEOUT, "KEYS"];
            let words: Vec<&str> =
                fixed.into_iter().chain(keys.iter().map(String::as_str)).collect();
            // A key may have ended meanwhile.
            let _: Value = from.query(&words);
        }
    }

    /// Makes the target the owner of a slot, and returns when all masters know that.
    ///
    /// # Panics
    ///
    /// Panics if the slot is not on its way, or has keys that were not moved.
    pub fn end_migration(&self, slot: u16) {
        let (from, to) = (self.source(slot), self.target(slot));
        let (port, id, word) = (to.port(), id(to), slot.to_string());
        let tell = |server: &RedisServer| {
            let told = ["CLUSTER", "SETSLOT", &word, "NODE", &id];
            // Keys that were made meanwhile would be lost.
            let done = || server.try_query::<Value>(&told).is_ok().then_some(());
            Patience::of(Self::LIMIT).until(done).expect("the slot has another owner");
        };
        tell(to);
        tell(from);
        for server in self.masters().iter().filter(|one| one.port() != port) {
            tell(server);
        }
    }

    fn source(&self, slot: u16) -> &RedisServer {
        let owner = self.servers().iter().find(|server| owns(server, slot));
        owner.expect("the slot has an owner")
    }

    fn target(&self, slot: u16) -> &RedisServer {
        let mark = format!("[{slot}-<-");
        let imports =
            |server: &&RedisServer| server.query::<String>(&["CLUSTER", "NODES"]).contains(&*mark);
        self.servers().iter().find(imports).expect("the slot is on its way")
    }
}

fn id(server: &RedisServer) -> String {
    server.query(&["CLUSTER", "MYID"])
}
