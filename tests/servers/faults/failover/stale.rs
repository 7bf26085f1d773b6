//! A master that wakes up when another one has taken over.

use std::time::Duration;

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{Patience, RedisServer, SentinelGroup};

use crate::{
    faults::server::scene,
    support::{lease, wait},
};

const TTL: Duration = Duration::from_secs(2);
/// The locks, of which the first one is held at the new master.
pub(super) const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The lock by which the other process finds out where the master is. What it asked for while the old
/// one stood still runs when that one wakes up, and nobody believes in it.
const SWITCHED: &str = "switched";

pub(super) struct Stale {
    group: SentinelGroup,
    /// The numbers of the stale master and of the new one.
    old: usize,
    new: usize,
    /// A process that knows the stale master alone, and has not heard of the other one.
    pub(super) left_behind: LockRuntime,
    /// The first lock, held at the new master.
    pub(super) held: Guard,
}

impl Stale {
    /// Stops a master until another one has taken over and has a replica.
    pub(super) async fn start(settings: &[(&str, &str)]) -> Self {
        let group = SentinelGroup::start();
        for server in group.servers() {
            for (key, value) in settings {
                scene::set(server, key, value);
            }
        }
        let old = number(&group, group.master());
        let left_behind = scene::connect(&group.master().url(), TTL).await;
        let follows = scene::connect(&group.url(), TTL).await;
        scene::take(&follows, NAMES[0]).await.release().await.expect("held to the end");

        // The Sentinels would demote it eight seconds after it has woken up.
        group.master().command(&["ACL", "SETUSER", "default", "-replicaof", "-slaveof"]);
        group.servers()[old].stop_signal();
        let has_taken_over = |number: &usize| {
            let server = &group.servers()[*number];
            *number != old
                && server.is_master()
                && server.told("replication", "connected_slaves") > 0
        };
        let new = || (0..group.servers().len()).find(has_taken_over);
        let new = Patience::of(wait::CEILING).until(new).expect("another one takes over");
        scene::take(&follows, SWITCHED).await.release().await.expect("held to the end");
        let held = scene::take(&follows, NAMES[0]).await;

        let stale = &group.servers()[old];
        stale.cont_signal();
        // It has seen that its replicas are gone when it answers.
        stale.command(&["PING"]);
        Self { group, old, new, left_behind, held }
    }

    fn stale(&self) -> &RedisServer {
        &self.group.servers()[self.old]
    }

    /// How many leases the stale master has given to the process that was left behind.
    pub(super) fn leases(&self) -> usize {
        lease::held(self.stale()).iter().filter(|key| !key.contains(SWITCHED)).count()
    }

    /// Takes the setting away by which the stale master refuses writes.
    pub(super) fn let_it_write(&self) {
        scene::set(self.stale(), "min-replicas-to-write", "0");
    }

    /// Makes the stale master a replica of the new one, as the Sentinels would.
    pub(super) fn demote(&self) {
        self.stale().follow(&self.group.servers()[self.new]);
    }
}

fn number(group: &SentinelGroup, server: &RedisServer) -> usize {
    let found = group.servers().iter().position(|one| one.pid() == server.pid());
    found.expect("one of the group")
}
