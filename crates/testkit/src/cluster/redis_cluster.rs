use std::{sync::OnceLock, time::Duration};

use redis::Value;

use super::{slot_of, view::View};
use crate::{
    Patience, RedisServer,
    guardian::{Guardian, Ward},
    server::{RedisServerBuilder, Replication},
};

/// How many slots a Cluster has.
pub(super) const SLOTS: u16 = 16_384;

/// A Cluster of three masters that own a third of the slots each, with a replica for each of them
/// or without. [`of_masters`](Self::of_masters) makes other numbers.
#[derive(Debug)]
pub struct RedisCluster {
    /// First the masters of the start, then their replicas in the same order.
    servers: Vec<RedisServer>,
    /// How many of them are masters at the start.
    masters: u16,
}

impl RedisCluster {
    /// How many masters there are.
    pub const MASTERS: u16 = 3;

    /// How long the Cluster has for each change; nodes wait for two seconds by themselves.
    pub(super) const LIMIT: Duration = Duration::from_secs(60);

    /// After how long a failover in agreement is given up by the servers, and a little more.
    const FAILOVER_LIMIT: Duration = Duration::from_millis(5500);

    /// Starts three masters without replicas, and returns when every one takes commands.
    ///
    /// # Panics
    ///
    /// Panics if a server does not start, or they do not become a Cluster.
    pub fn start() -> Self {
        Self::of_masters(Self::MASTERS)
    }

    /// Starts as many masters without replicas, which share the slots; of another number than three,
    /// [`master_of`](Self::master_of) tells who owns a key.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does, and if the number is 0.
    pub fn of_masters(masters: u16) -> Self {
        Self::of((0..masters).map(|_| node().start()).collect(), masters)
    }

    /// Starts three masters without replicas, that speak TLS only, and ask clients for a certificate
    /// under their authority.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does.
    pub fn with_tls() -> Self {
        let asking = |node: RedisServerBuilder| node.arg("tls-auth-clients", "yes").start();
        let first = asking(RedisServer::builder().tls().cluster_node());
        let mut servers = vec![first];
        for _ in 1..Self::MASTERS {
            let node = RedisServer::builder().tls_under(&servers[0]).cluster_node();
            servers.push(asking(node));
        }
        Self::of(servers, Self::MASTERS)
    }

    /// Starts three masters that share the slots, and a fourth one that owns none.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does.
    pub fn with_spare() -> Self {
        Self::of((0..=Self::MASTERS).map(|_| node().start()).collect(), Self::MASTERS)
    }

    /// Starts three masters with a replica each, which takes over when its master is silent for two
    /// seconds. While a shard is down, the others go on.
    ///
    /// # Panics
    ///
    /// Panics if a server does not start, or they do not become a Cluster.
    pub fn with_replicas() -> Self {
        let member = |_| {
            node()
                .arg("cluster-node-timeout", "2000")
                .arg("cluster-require-full-coverage", "no")
                .arg("cluster-replica-validity-factor", "0")
                // A replica would move to a master that has none.
                .arg("cluster-migration-barrier", "9")
                .arg("repl-diskless-sync-delay", "0")
                .start()
        };
        let servers = (0..2 * Self::MASTERS).map(member).collect();
        let cluster = Self::of(servers, Self::MASTERS);
        let (masters, replicas) = cluster.servers.split_at(Self::MASTERS.into());
        for (master, replica) in masters.iter().zip(replicas) {
            let id: String = master.query(&["CLUSTER", "MYID"]);
            // It may not know that master yet.
            let follows = || replica.try_query::<Value>(&["CLUSTER", "REPLICATE", &id]).ok();
            Patience::of(Self::LIMIT).until(follows).expect("a server becomes a replica");
        }
        cluster.wait_until_whole();
        cluster
    }

    /// The Cluster that all tests of this process share, as a start takes seconds; they keep apart
    /// by their namespaces. It has no replicas, and ends with the process.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<(RedisCluster, Guardian)> = OnceLock::new();
        let (cluster, _) = SHARED.get_or_init(|| {
            let cluster = Self::start();
            let guardian = Guardian::of(cluster.servers.iter().map(Ward::from));
            (cluster, guardian)
        });
        cluster
    }

    /// Makes a Cluster of servers, the first of which share the slots.
    fn of(servers: Vec<RedisServer>, masters: u16) -> Self {
        let cluster = Self { servers, masters };
        cluster.unite();
        cluster
    }

    /// Makes a Cluster of its servers, which know of no other one: the first of them share the slots.
    ///
    /// # Panics
    ///
    /// Panics if they know of others, or do not become a Cluster.
    pub fn unite(&self) {
        let Self { servers, masters } = self;
        for (number, server) in (0..).zip(servers) {
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            let slots: Vec<_> =
                (0..SLOTS).filter(|slot| owner(*slot, *masters) == number).collect();
            let slots: Vec<_> = slots.iter().map(ToString::to_string).collect();
            if !slots.is_empty() {
                let words = ["CLUSTER", "ADDSLOTS"].into_iter();
                server.command(&words.chain(slots.iter().map(String::as_str)).collect::<Vec<_>>());
            }
        }
        // Only now: a node that knows others takes no epoch any more.
        let first = servers[0].port().expect("a node has a port").to_string();
        for server in &servers[1..] {
            server.command(&["CLUSTER", "MEET", "127.0.0.1", &first]);
        }
        let united = || servers.iter().all(|one| self.is_united(one)).then_some(());
        Patience::of(Self::LIMIT).until(united).expect("the servers become a Cluster");
    }

    /// The address of the Cluster: all servers.
    ///
    /// # Panics
    ///
    /// Never: every node has a port.
    pub fn url(&self) -> String {
        self.url_with("")
    }

    /// The address with a login before the hosts, as in `user:password@`.
    ///
    /// # Panics
    ///
    /// Never: every node has a port.
    pub fn url_with(&self, login: &str) -> String {
        let port = |server: &RedisServer| server.port().expect("a node has a port");
        let hosts = self.servers.iter().map(|server| format!("127.0.0.1:{}", port(server)));
        let scheme = if self.servers[0].ca_pem().is_some() { "rediss" } else { "redis" };
        format!("{scheme}+cluster://{login}{}", hosts.collect::<Vec<_>>().join(","))
    }

    /// All servers: first the masters of the start in the order of their slots, then the replicas.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The masters of the start, in the order of their slots.
    pub fn masters(&self) -> &[RedisServer] {
        &self.servers[..self.masters.into()]
    }

    /// The number of the master that owns a key at the start, of three.
    pub fn owner_of(key: &str) -> usize {
        owner(slot_of(key), Self::MASTERS).into()
    }

    /// The number of the master of this Cluster that owns a key at the start.
    pub fn master_of(&self, key: &str) -> usize {
        owner(slot_of(key), self.masters).into()
    }

    /// The number of the server that owns a key now, by its own account and that of most others
    /// that answer; `None` while there is none.
    pub fn owner_of_now(&self, key: &str) -> Option<usize> {
        let slot = slot_of(key);
        let views: Vec<View> = self.servers.iter().filter_map(View::of).collect();
        self.servers.iter().position(|server| {
            let port = server.port();
            let votes = views.iter().filter(|view| view.owner(slot) == port).count();
            votes * 2 > views.len() && Replication::of(server).is_master()
        })
    }

    /// The numbers of the servers that have a key at the start: its master and the replica of it.
    pub fn shard_of(key: &str) -> [usize; 2] {
        let master = Self::owner_of(key);
        [master, master + usize::from(Self::MASTERS)]
    }

    /// Kills a server with `SIGKILL`.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number.
    pub fn kill(&self, number: usize) {
        let server = &self.servers[number];
        // Redis 7.4 may not start with the file that it wrote before it knew the shard of each replica.
        let _: Result<Value, _> = server.try_query(&["CLUSTER", "SAVECONFIG"]);
        server.kill();
    }

    /// Starts a server again as the same node, without its data.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number, and as [`RedisServer::restart`] does.
    pub fn revive(&self, number: usize) {
        self.servers[number].restart();
    }

    /// Has the replica of a master take over, in agreement with it, and returns when it has.
    ///
    /// # Panics
    ///
    /// Panics if the server is no master with a replica, or there is no other master within a
    /// minute.
    pub fn fail_over(&self, number: usize) {
        let id: String = self.servers[number].query(&["CLUSTER", "MYID"]);
        let follows = |server: &&RedisServer| {
            let myself: Option<String> = server.try_query(&["CLUSTER", "NODES"]).ok();
            let lines = myself.unwrap_or_default();
            lines.lines().any(|line| line.contains("myself,slave") && line.contains(&*id))
        };
        let replica = self.servers.iter().find(follows).expect("the master has a replica");
        let is_master = || replica.is_master().then_some(());
        let takes_over = || {
            // A repeat begins anew, and the master stands still for it.
            replica.try_query::<Value>(&["CLUSTER", "FAILOVER"]).ok()?;
            Patience::of(Self::FAILOVER_LIMIT).until(is_master)
        };
        Patience::of(Self::LIMIT).until(takes_over).expect("the replica takes over");
        let agreed = || {
            let views: Vec<View> = self.servers.iter().filter_map(View::of).collect();
            let is_left = |view: &View| !view.has_owner(self.servers[number].port());
            views.iter().all(is_left).then_some(())
        };
        Patience::of(Self::LIMIT).until(agreed).expect("all hear of the new master");
    }

    /// Returns when all servers are up, every master has its replica, and all agree.
    ///
    /// # Panics
    ///
    /// Panics if that takes longer than a minute.
    pub fn wait_until_whole(&self) {
        let is_whole = || {
            let (mut masters, mut replicas) = (0, 0);
            for server in &self.servers {
                let replication = Replication::of(server);
                masters += usize::from(replication.is_master() && replication.replicas() == 1);
                replicas += usize::from(replication.is_in_sync());
            }
            let are_complete = masters == usize::from(Self::MASTERS) && masters == replicas;
            let mut all = self.servers.iter();
            // A master hears last that a server is its replica, and ignores it before.
            (are_complete && all.all(|one| self.is_united(one) && knows_replicas(one)))
                .then_some(())
        };
        Patience::of(Self::LIMIT).until(is_whole).expect("the Cluster is whole again");
    }

    /// Whether a server takes commands, is connected to all others, and takes none of them for
    /// dead.
    fn is_united(&self, server: &RedisServer) -> bool {
        let ask = |what| server.try_query::<String>(&["CLUSTER", what]).unwrap_or_default();
        let nodes = ask("NODES");
        let is_well = |line: &&str| line.contains(" connected") && !line.contains("fail");
        ask("INFO").contains("cluster_state:ok")
            && nodes.lines().filter(is_well).count() == self.servers.len()
    }
}

/// Whether a server knows which ones are replicas.
fn knows_replicas(server: &RedisServer) -> bool {
    let nodes = server.try_query::<String>(&["CLUSTER", "NODES"]).unwrap_or_default();
    let is_replica =
        |line: &&str| line.split(' ').nth(2).is_some_and(|word| word.contains("slave"));
    nodes.lines().filter(is_replica).count() == usize::from(RedisCluster::MASTERS)
}

fn node() -> RedisServerBuilder {
    RedisServer::builder().cluster_node()
}

/// The number of the master that owns a slot at the start, of so many.
fn owner(slot: u16, masters: u16) -> u16 {
    slot / SLOTS.div_ceil(masters)
}
