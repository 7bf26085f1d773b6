use std::collections::BTreeMap;

use super::{chart::Chart, stream::Stream, waiting::Waiting};
use crate::sim::{network::Happening, server::Server};

/// One server.
pub(in crate::sim) struct Node {
    pub(in crate::sim) server: Server,
    pub(in crate::sim) state: State,
    /// Whether it takes itself for a master.
    pub(in crate::sim) is_master: bool,
    pub(super) stream: Stream,
    pub(super) chart: Chart,
    /// Commands that wait for acknowledgements, by their numbers.
    pub(in crate::sim) waiting: BTreeMap<u64, Waiting>,
    /// What lies in the sockets of a server that sleeps.
    pub(in crate::sim) sockets: Vec<Happening>,
}

/// What a server does with what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum State {
    /// It answers.
    Awake,
    /// It is stopped: what arrives stays in its sockets.
    Asleep,
    /// It is gone: who sends to it is refused by its system.
    Dead,
}

impl Node {
    pub(super) fn new(server: Server, is_master: bool) -> Self {
        let (stream, chart) = (Stream::default(), Chart::default());
        let (state, waiting, sockets) = (State::Awake, BTreeMap::new(), Vec::new());
        Self { server, state, is_master, stream, chart, waiting, sockets }
    }
}
