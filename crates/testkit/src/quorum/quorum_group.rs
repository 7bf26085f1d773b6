use std::{fs, io, sync::OnceLock};

use super::{builder::QuorumBuilder, network::QuorumNetwork};
use crate::{
    ClockShim, RedisServer,
    guardian::{Guardian, Ward},
};

/// Some servers that do not know each other: all are masters, none has a replica.
#[derive(Debug)]
pub struct QuorumGroup {
    nodes: Vec<Node>,
}

/// A server of a quorum.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) server: RedisServer,
    pub(super) clock: Option<ClockShim>,
}

impl QuorumGroup {
    /// How the key of a mark ends.
    const BOOT_MARK: &str = "boot";

    /// Where a server keeps what [`save`](Self::save) saved.
    const SNAPSHOT: &str = "dump.rdb";

    /// Describes so many servers.
    pub fn builder(nodes: usize) -> QuorumBuilder {
        QuorumBuilder::new(nodes)
    }

    /// Starts so many servers, each on a port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// Panics if a server does not start.
    pub fn start(nodes: usize) -> Self {
        Self::builder(nodes).start()
    }

    /// The group of three or of five that all tests of this process share; they keep apart by their
    /// namespaces, and nobody harms it. It ends with the process.
    ///
    /// # Panics
    ///
    /// Panics if another number is asked for, and as [`start`](Self::start) does.
    pub fn shared(nodes: usize) -> &'static Self {
        static SHARED: [OnceLock<(QuorumGroup, Guardian)>; 2] = [OnceLock::new(), OnceLock::new()];
        let shared = match nodes {
            3 => &SHARED[0],
            5 => &SHARED[1],
            _ => panic!("a quorum of {nodes} is not shared"),
        };
        let start = || {
            let group = Self::start(nodes);
            let guardian = Guardian::of(group.servers().map(Ward::from));
            (group, guardian)
        };
        &shared.get_or_init(start).0
    }

    pub(super) fn of(nodes: Vec<Node>) -> Self {
        Self { nodes }
    }

    /// The address of the group: all servers.
    pub fn url(&self) -> String {
        self.url_with("")
    }

    /// The address with a login before the hosts, as in `user:password@`.
    ///
    /// # Panics
    ///
    /// Never: every server has a port.
    pub fn url_with(&self, login: &str) -> String {
        let port = |server: &RedisServer| server.port().expect("a server has a port");
        address(self.is_tls(), login, self.servers().map(port))
    }

    /// A network of its own for one client.
    pub fn network(&self) -> QuorumNetwork {
        QuorumNetwork::before(self)
    }

    /// The servers, by their numbers.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &RedisServer> {
        self.nodes.iter().map(|node| &node.server)
    }

    /// The server of a number.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    pub fn server(&self, number: usize) -> &RedisServer {
        &self.nodes[number].server
    }

    /// How many servers there are.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How many servers are most of them.
    pub fn majority(&self) -> usize {
        self.nodes() / 2 + 1
    }

    /// Has every server count at once under the default namespace, as if it had never lost anything:
    /// new servers stay out for a while otherwise.
    ///
    /// # Panics
    ///
    /// Panics if a server does not answer.
    pub fn let_vote(&self) {
        self.let_vote_under("leasehold");
    }

    /// The same under another namespace.
    ///
    /// # Panics
    ///
    /// Panics as [`let_vote`](Self::let_vote) does.
    pub fn let_vote_under(&self, namespace: &str) {
        for server in self.servers() {
            let told: String = server.query(&["INFO", "server"]);
            let run = told.lines().find_map(|line| line.strip_prefix("run_id:"));
            // It has counted for long; the longest ttl is that of the runtime that asks.
            let run = run.expect("a server tells its run").trim();
            let is = |setting: &str, wanted: &str| {
                let [_, value]: [String; 2] = server.query(&["CONFIG", "GET", setting]);
                value == wanted
            };
            let always =
                if is("appendonly", "yes") && is("appendfsync", "always") { "/always" } else { "" };
            let mark = format!("1000000000000 100 {run}{always}");
            server.command(&["SET", &format!("{namespace}:{}", Self::BOOT_MARK), &mark]);
        }
    }

    /// Whether a key, as [`RedisServer::keys_without_ttl`] tells it, is the mark of a server of a
    /// quorum, which has no end.
    pub fn is_boot_mark(key: &str) -> bool {
        key.strip_suffix(Self::BOOT_MARK).is_some_and(|namespace| namespace.ends_with(':'))
    }

    /// The clock of a server that has one of its own.
    ///
    /// # Panics
    ///
    /// Panics if the group was not started with [clocks](QuorumBuilder::clocks), or there is no
    /// such server.
    pub fn clock(&self, number: usize) -> &ClockShim {
        self.nodes[number].clock.as_ref().expect("a group with clocks of its own")
    }

    /// Whether the servers speak TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.nodes[0].server.ca_pem().is_some()
    }

    /// Kills a server with `SIGKILL`.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number.
    pub fn kill(&self, number: usize) {
        self.server(number).kill();
    }

    /// Stops a server with `SIGSTOP`: connections stay open and nothing is answered.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number, or it was killed.
    pub fn pause(&self, number: usize) {
        self.server(number).stop_signal();
    }

    /// Lets a stopped server go on.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number.
    pub fn resume(&self, number: usize) {
        self.server(number).cont_signal();
    }

    /// Has a server save what it keeps; [`revive`](Self::revive) brings it back.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number, or it does not answer.
    pub fn save(&self, number: usize) {
        self.server(number).command(&["SAVE"]);
    }

    /// Kills a server, and starts it again with what it saved last, however old that is.
    ///
    /// # Panics
    ///
    /// Panics if there is no server of this number, and as [`RedisServer::restart`] does.
    pub fn revive(&self, number: usize) {
        self.server(number).restart();
    }

    /// Kills a server, and starts it again empty.
    ///
    /// # Panics
    ///
    /// Panics as [`revive`](Self::revive) does, and if the old data cannot be deleted.
    pub fn revive_empty(&self, number: usize) {
        let server = self.server(number);
        server.kill();
        match fs::remove_file(server.folder().join(Self::SNAPSHOT)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("{error}"),
            _ => server.restart(),
        }
    }
}

/// The address of a quorum, as Leasehold takes it.
pub(super) fn address(is_tls: bool, login: &str, ports: impl Iterator<Item = u16>) -> String {
    let scheme = if is_tls { "rediss" } else { "redis" };
    let hosts: Vec<_> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
    format!("{scheme}+quorum://{login}{}", hosts.join(","))
}
