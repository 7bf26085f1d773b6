use std::path::PathBuf;

use super::{address::Address, redis_server::RedisServer, version};
use crate::shim::ClockShim;

/// What a private server is to be like; a unix socket and no persistence unless said otherwise.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing by itself; call `start()`"]
pub struct RedisServerBuilder {
    pub(super) program: PathBuf,
    pub(super) address: Address,
    pub(super) args: Vec<(String, Vec<String>)>,
    pub(super) variables: Vec<(String, String)>,
    /// Where the certificates of another server are.
    pub(super) authority: Option<PathBuf>,
    /// Whether the server shows the certificate of its authority.
    pub(super) is_its_authority: bool,
}

impl RedisServerBuilder {
    pub(super) fn new() -> Self {
        Self {
            program: version::program(),
            address: Address::Unix,
            args: Vec::new(),
            variables: Vec::new(),
            authority: None,
            is_its_authority: false,
        }
    }

    /// Listens on a free port of 127.0.0.1. Defaults to a unix socket.
    pub fn tcp(mut self) -> Self {
        self.address = Address::Tcp(0);
        self
    }

    /// Starts as a node of a Redis Cluster that knows no other node, on a free port of 127.0.0.1;
    /// with TLS only, also between nodes, behind [`tls`](Self::tls).
    pub fn cluster_node(mut self) -> Self {
        self.address = if self.address.is_tls() { Address::TlsNode(0) } else { Address::Node(0) };
        self
    }

    /// Listens on a free port of 127.0.0.1, with TLS only, under a private authority whose
    /// certificate is [`RedisServer::ca_pem`]. Defaults to a unix socket.
    pub fn tls(mut self) -> Self {
        self.address = Address::Tls(0);
        self
    }

    /// As [`tls`](Self::tls), under the authority of another server.
    pub fn tls_under(mut self, other: &RedisServer) -> Self {
        self.authority = Some(other.folder().into());
        self.tls()
    }

    /// As [`tls`](Self::tls), with the certificate of the authority as that of the server: clients refuse it.
    pub fn tls_as_authority(mut self) -> Self {
        self.is_its_authority = true;
        self.tls()
    }

    /// Adds a line of configuration, as in `redis.conf`; later ones win over earlier ones.
    ///
    /// The value is one argument; `arg("save", "")` is a way to write an empty one.
    pub fn arg(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.args.push((key.into(), vec![value.into()]));
        self
    }

    /// Starts as a replica of a server that has a port; over TLS, if both of them have it.
    ///
    /// # Panics
    ///
    /// Panics if the master has no port.
    pub fn replica_of(mut self, master: &RedisServer) -> Self {
        let port = master.port().expect("a master has a port").to_string();
        self.args.push(("replicaof".into(), vec!["127.0.0.1".into(), port]));
        self
    }

    /// Takes a command away from everybody, as some managed services do.
    pub fn without(mut self, command: &str) -> Self {
        self.args.push(("rename-command".into(), vec![command.into(), String::new()]));
        self
    }

    /// Sets a variable of the server's environment.
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((key.into(), value.into()));
        self
    }

    /// Gives the server the time of day of a shim.
    pub fn clock(self, shim: &ClockShim) -> Self {
        let variables = shim.variables().iter();
        variables.fold(self, |builder, (key, value)| builder.env(*key, value))
    }

    /// Asks the default user for a password; [`RedisServer::command`] does not need it.
    pub fn password(self, password: &str) -> Self {
        self.arg("requirepass", password)
    }

    /// Starts another program. Default: the one that `LEASEHOLD_REDIS_SERVER` names, else the
    /// `redis-server` that is found in `PATH`.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = program.into();
        self
    }

    /// Starts the server and returns when it answers.
    ///
    /// # Panics
    ///
    /// Panics if the program is missing, naming the command that installs it, or if the server
    /// does not answer within ten seconds, with its log.
    pub fn start(self) -> RedisServer {
        RedisServer::start_as(self)
    }
}
