use leasehold_testkit::{Patience, RedisCluster, RedisServer};

use super::{PLAN, acknowledged, kind::Kind, site::Site};
use crate::support::wait;

/// Names of locks, some of which are in each shard.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

#[test]
fn nothing_is_lost_when_a_master_is_killed_hangs_or_is_replaced() {
    println!("\n  cluster: {}", super::run(&RedisCluster::with_replicas()));
}

#[test]
fn acknowledged_leases_outlive_a_master_that_is_killed_or_hangs() {
    let cluster = RedisCluster::with_replicas();
    for kind in [Kind::Killed, Kind::Hung] {
        println!("\n  cluster, acknowledged, {kind}: {:?}", acknowledged::run(&cluster, kind, "a"));
    }
}

impl Site for RedisCluster {
    fn url(&self) -> String {
        self.url()
    }

    fn servers(&self) -> &[RedisServer] {
        self.servers()
    }

    /// Each shard in turn.
    fn lock(&self, round: usize) -> &'static str {
        let shard = round % self.masters().len();
        let is_there = |name: &&'static str| Self::owner_of(&PLAN.of(name).lease()) == shard;
        NAMES.into_iter().find(is_there).expect("a name of every shard")
    }

    fn master_of(&self, key: &str) -> usize {
        let owner = || self.owner_of_now(key);
        Patience::of(wait::CEILING).until(owner).expect("the key has an owner")
    }

    fn heirs(&self, master: usize) -> Vec<usize> {
        vec![(master + self.masters().len()) % self.servers().len()]
    }

    fn replace(&self, master: usize) {
        self.fail_over(master);
    }

    fn have_noticed(&self, master: usize) -> bool {
        let witnesses = (0..self.servers().len()).filter(|server| *server != master);
        let node = format!(":{}@", self.servers()[master].port().expect("a node has a port"));
        let mut told = witnesses.map(|server| {
            self.servers()[server].try_query::<String>(&["CLUSTER", "NODES"]).unwrap_or_default()
        });
        told.any(|nodes| nodes.lines().any(|line| line.contains(&node) && is_dead(line)))
    }

    fn heal(&self) {
        self.servers().iter().for_each(RedisServer::rejoin);
        self.wait_until_whole();
    }
}

/// Whether most masters take a node for dead: `fail`; one of them alone says `fail?`.
fn is_dead(line: &str) -> bool {
    line.split(' ').nth(2).is_some_and(|flags| flags.split(',').any(|flag| flag == "fail"))
}
