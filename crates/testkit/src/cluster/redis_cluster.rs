use std::{sync::OnceLock, time::Duration};

use super::slot::{SLOTS, slot_of};
use crate::{
    Patience, RedisServer,
    guardian::{Guardian, Ward},
};

/// Three masters that own a third of the slots each, without replicas.
#[derive(Debug)]
pub struct RedisCluster {
    masters: Vec<RedisServer>,
}

impl RedisCluster {
    /// How many masters there are.
    pub const MASTERS: u16 = 3;

    /// How long the masters have to find each other; they wait for two seconds by themselves.
    const LIMIT: Duration = Duration::from_secs(30);

    /// Starts a Cluster and returns when every master takes commands.
    ///
    /// # Panics
    ///
    /// Panics if a server does not start, or they do not become a Cluster.
    pub fn start() -> Self {
        let master = |_| RedisServer::builder().tcp().arg("cluster-enabled", "yes").start();
        let cluster = Self { masters: (0..Self::MASTERS).map(master).collect() };
        for (number, server) in (0..).zip(&cluster.masters) {
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            let slots: Vec<_> = (0..SLOTS).filter(|slot| owner(*slot) == number).collect();
            let slots: Vec<_> = slots.iter().map(ToString::to_string).collect();
            let words = ["CLUSTER", "ADDSLOTS"].into_iter();
            server.command(&words.chain(slots.iter().map(String::as_str)).collect::<Vec<_>>());
        }
        // Only now: a master that knows others takes no epoch any more.
        for server in &cluster.masters {
            cluster.introduce(server);
        }
        let united = || cluster.masters.iter().all(is_united).then_some(());
        Patience::of(Self::LIMIT).until(united).expect("the masters become a Cluster");
        cluster
    }

    /// The Cluster that all tests of this process share, as a start takes seconds; they keep apart
    /// by their namespaces. It ends with the process.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<(RedisCluster, Guardian)> = OnceLock::new();
        let (cluster, _) = SHARED.get_or_init(|| {
            let cluster = Self::start();
            let guardian = Guardian::of(cluster.masters.iter().map(Ward::from));
            (cluster, guardian)
        });
        cluster
    }

    /// The masters, in the order of their slots.
    pub fn masters(&self) -> &[RedisServer] {
        &self.masters
    }

    /// The number of the master that owns a key.
    pub fn owner_of(key: &str) -> usize {
        owner(slot_of(key)).into()
    }

    fn introduce(&self, server: &RedisServer) {
        for other in self.masters.iter().filter(|other| other.pid() != server.pid()) {
            let port = other.port().expect("a master has a port").to_string();
            server.command(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        }
    }
}

/// The number of the master that owns a slot.
fn owner(slot: u16) -> u16 {
    slot / SLOTS.div_ceil(RedisCluster::MASTERS)
}

/// Whether a master takes commands, and tells all others what is published.
fn is_united(master: &RedisServer) -> bool {
    let info: String = master.query(&["CLUSTER", "INFO"]);
    let nodes: String = master.query(&["CLUSTER", "NODES"]);
    let connected = nodes.lines().filter(|line| line.contains(" connected ")).count();
    info.contains("cluster_state:ok") && connected == usize::from(RedisCluster::MASTERS)
}
