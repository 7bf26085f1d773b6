use super::quorum_group::{Node, QuorumGroup};
use crate::{ClockShim, RedisServer, server::RedisServerBuilder};

/// What the servers of a quorum are to be like; each listens on a port of 127.0.0.1, has the right
/// time and forgets everything when it restarts, unless said otherwise.
#[derive(Debug)]
#[must_use = "a builder does nothing by itself; call `start()`"]
pub struct QuorumBuilder {
    nodes: usize,
    tls: bool,
    clocks: bool,
    args: Vec<(String, String)>,
}

impl QuorumBuilder {
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes, tls: false, clocks: false, args: Vec::new() }
    }

    /// Speaks TLS only, all servers under one private authority. Defaults to plain TCP.
    pub fn tls(self) -> Self {
        Self { tls: true, ..self }
    }

    /// Gives each server a time of day of its own, which [`QuorumGroup::clock`] moves. Defaults to
    /// that of the machine.
    pub fn clocks(self) -> Self {
        Self { clocks: true, ..self }
    }

    /// Adds a line of configuration to every server, as in `redis.conf`.
    pub fn arg(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.args.push((key.into(), value.into()));
        self
    }

    /// Starts the servers, and returns when all of them answer.
    ///
    /// # Panics
    ///
    /// Panics if one does not start, or if the clocks are to be moved and there is no C compiler.
    pub fn start(self) -> QuorumGroup {
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes);
        for _ in 0..self.nodes {
            let clock = self.clocks.then(ClockShim::build);
            let server = self.server(nodes.first().map(|node| &node.server), clock.as_ref());
            nodes.push(Node { server: server.start(), clock });
        }
        QuorumGroup::of(nodes)
    }

    fn server(&self, first: Option<&RedisServer>, clock: Option<&ClockShim>) -> RedisServerBuilder {
        let server = match (self.tls, first) {
            (false, _) => RedisServer::builder().tcp(),
            (true, None) => RedisServer::builder().tls(),
            (true, Some(first)) => RedisServer::builder().tls_under(first),
        };
        let server = clock.into_iter().fold(server, RedisServerBuilder::clock);
        let args = self.args.iter();
        args.fold(server, |server, (key, value)| server.arg(key.as_str(), value.as_str()))
    }
}
