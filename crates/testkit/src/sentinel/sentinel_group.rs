use std::{sync::OnceLock, time::Duration};

use super::member::Sentinel;
use crate::{
    Patience, RedisServer,
    guardian::{Guardian, Ward},
    server::{RedisServerBuilder, Replication},
};

/// A master, two replicas, and three Sentinels of which two decide.
#[derive(Debug)]
pub struct SentinelGroup {
    // Before the servers: nobody fails over while they end.
    sentinels: Vec<Sentinel>,
    servers: Vec<RedisServer>,
}

impl SentinelGroup {
    /// The name of the master, as the Sentinels know it.
    pub const MASTER: &str = "leasehold";

    /// How many replicas there are at the start.
    const REPLICAS: usize = 2;

    /// How many Sentinels there are.
    const SENTINELS: usize = 3;

    /// After how much silence the master of the shared group is down: a server that waits its turn
    /// on a machine under load never is.
    const SHARED_DOWN_AFTER: Duration = Duration::from_secs(120);

    /// How long the group has for each change; Sentinels speak to each other every two seconds.
    const LIMIT: Duration = Duration::from_secs(30);

    /// Starts a group, and returns when the replicas have what the master has, and each Sentinel
    /// is connected to both of them and to the other Sentinels.
    ///
    /// # Panics
    ///
    /// Panics if a process does not start, or they do not find each other.
    pub fn start() -> Self {
        Self::of(RedisServer::builder().tcp(), |server, _| server.tcp())
    }

    /// Starts a group whose servers speak TLS only, and whose Sentinels speak it, too.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does.
    pub fn with_tls() -> Self {
        Self::of(RedisServer::builder().tls(), RedisServerBuilder::tls_under)
    }

    fn of(
        master: RedisServerBuilder,
        replica: impl Fn(RedisServerBuilder, &RedisServer) -> RedisServerBuilder,
    ) -> Self {
        let at_once = |server: RedisServerBuilder| server.arg("repl-diskless-sync-delay", "0");
        let mut servers = vec![at_once(master).start()];
        for _ in 0..Self::REPLICAS {
            let replica = replica(RedisServer::builder(), &servers[0]).replica_of(&servers[0]);
            servers.push(at_once(replica).start());
        }
        // Before the Sentinels: they ask the master for its replicas at once, then after seconds.
        let in_sync = || servers[1..].iter().all(is_in_sync).then_some(());
        Patience::of(Self::LIMIT).until(in_sync).expect("the replicas get what the master has");
        let sentinel = |_| Sentinel::start(&servers[0]);
        let sentinels: Vec<_> = (0..Self::SENTINELS).map(sentinel).collect();
        let united = || sentinels.iter().all(is_united).then_some(());
        Patience::of(Self::LIMIT).until(united).expect("the Sentinels find each other");
        Self { sentinels, servers }
    }

    /// The group that all tests of this process share, as a start takes seconds; they keep apart by
    /// their namespaces, and nobody fails it over. It ends with the process.
    ///
    /// # Panics
    ///
    /// Panics as [`start`](Self::start) does.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<(SentinelGroup, Guardian)> = OnceLock::new();
        let (group, _) = SHARED.get_or_init(|| {
            let group = Self::start();
            let sentinels = group.sentinels.iter().map(Ward::from);
            let guardian = Guardian::of(sentinels.chain(group.servers.iter().map(Ward::from)));
            let limit = Self::SHARED_DOWN_AFTER.as_millis().to_string();
            for sentinel in &group.sentinels {
                let command = ["SENTINEL", "SET", Self::MASTER, "down-after-milliseconds", &limit];
                sentinel.command(&command);
            }
            (group, guardian)
        });
        group
    }

    /// The address of the group: all Sentinels, and the name of the master.
    pub fn url(&self) -> String {
        self.url_with("")
    }

    /// The address with a login at the servers before the hosts, as in `user:password@`.
    pub fn url_with(&self, login: &str) -> String {
        let port = |sentinel: &Sentinel| sentinel.tls_port().unwrap_or_else(|| sentinel.port());
        let address = |sentinel: &Sentinel| format!("127.0.0.1:{}", port(sentinel));
        let addresses: Vec<_> = self.sentinels.iter().map(address).collect();
        let scheme = if self.servers[0].ca_pem().is_some() { "rediss" } else { "redis" };
        format!("{scheme}+sentinel://{login}{}/{}", addresses.join(","), Self::MASTER)
    }

    /// The servers; the first one was the master at the start.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The Sentinels.
    pub fn sentinels(&self) -> &[Sentinel] {
        &self.sentinels
    }

    /// The server that most Sentinels name now and that is a master by its own account, as soon
    /// as there is one.
    ///
    /// # Panics
    ///
    /// Panics if there is none within thirty seconds.
    pub fn master(&self) -> &RedisServer {
        &self.servers[self.master_index()]
    }

    /// Has a Sentinel make another server the master, and returns when it is.
    ///
    /// The old master goes on, and goes on writing, for some seconds until the Sentinels make it a
    /// replica.
    ///
    /// # Panics
    ///
    /// Panics if no Sentinel answers, if the one that does refuses for thirty seconds, or if there
    /// is no other master thirty seconds later.
    pub fn fail_over(&self) {
        let old = self.master_index();
        // Always the same one: two that fail over at the same time hinder each other.
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.named_port().is_some());
        let sentinel = sentinel.expect("a Sentinel answers");
        let command = ["SENTINEL", "FAILOVER", Self::MASTER];
        let begin = || sentinel.try_query::<String>(&command).ok();
        Patience::of(Self::LIMIT).until(begin).expect("a Sentinel begins to fail over");
        let is_over = || self.present_master().filter(|new| *new != old);
        Patience::of(Self::LIMIT).until(is_over).expect("another server is the master");
    }

    /// Kills the present master with `SIGKILL` and returns its index in
    /// [`servers`](Self::servers); the Sentinels choose another one.
    ///
    /// # Panics
    ///
    /// Panics as [`master`](Self::master) does.
    pub fn kill_master(&mut self) -> usize {
        let index = self.master_index();
        self.servers[index].kill();
        index
    }

    /// Starts a server again at the same address, without its data and as what it was at the start
    /// of the group; the Sentinels make it a replica of the present master after some seconds.
    ///
    /// If it is the master that they still name, it stays the master, and all data is lost.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this index, and as [`RedisServer::restart`] does.
    pub fn revive(&mut self, index: usize) {
        self.servers[index].restart();
    }

    /// Makes every other server a replica of the present master, as the Sentinels do after some ten
    /// seconds, and returns when the group is as it was at the start.
    ///
    /// # Panics
    ///
    /// Panics if a server does not answer, or that takes longer than thirty seconds.
    pub fn heal(&self) {
        let master = self.master();
        for server in self.servers.iter().filter(|server| server.pid() != master.pid()) {
            server.rejoin();
            server.follow(master);
        }
        let united = || self.sentinels.iter().all(is_united).then_some(());
        Patience::of(Self::LIMIT).until(united).expect("the group is whole again");
    }

    fn master_index(&self) -> usize {
        let index = Patience::of(Self::LIMIT).until(|| self.present_master());
        index.expect("most Sentinels name a master that is one")
    }

    fn present_master(&self) -> Option<usize> {
        let named: Vec<_> = self.sentinels.iter().map(Sentinel::named_port).collect();
        self.servers.iter().position(|server| {
            let votes = named.iter().filter(|port| port.is_some() && **port == server.port());
            votes.count() > Self::SENTINELS / 2 && Replication::of(server).is_master()
        })
    }
}

fn is_in_sync(replica: &RedisServer) -> bool {
    Replication::of(replica).is_in_sync()
}

/// Whether a Sentinel is connected to all others of its group.
fn is_united(sentinel: &Sentinel) -> bool {
    sentinel.is_connected_to(SentinelGroup::REPLICAS, "REPLICAS", "slave")
        && sentinel.is_connected_to(SentinelGroup::SENTINELS - 1, "SENTINELS", "sentinel")
}
