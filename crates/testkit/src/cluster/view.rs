use std::ops::RangeInclusive;

use crate::RedisServer;

/// The port of the master of each range of slots, as one server sees it.
pub(super) struct View(Vec<(RangeInclusive<u16>, u16)>);

impl View {
    /// Asks a server; `None` if it does not answer.
    pub(super) fn of(server: &RedisServer) -> Option<Self> {
        let nodes: String = server.try_query(&["CLUSTER", "NODES"]).ok()?;
        Some(Self(nodes.lines().flat_map(ranges).collect()))
    }

    /// The port of the owner of a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<u16> {
        self.0.iter().find(|(range, _)| range.contains(&slot)).map(|(_, port)| *port)
    }

    /// Whether the server at a port owns any slot.
    pub(super) fn has_owner(&self, port: Option<u16>) -> bool {
        self.0.iter().any(|(_, owner)| Some(*owner) == port)
    }
}

/// Whether a server owns a slot by its own account, wherever it says that it listens.
pub(super) fn owns(server: &RedisServer, slot: u16) -> bool {
    let nodes: String = server.try_query(&["CLUSTER", "NODES"]).unwrap_or_default();
    let own = nodes.lines().filter(|line| line.contains("myself,master"));
    own.flat_map(ranges).any(|(range, _)| range.contains(&slot))
}

/// The slots of one node, which follow eight other words; what is on its way is in brackets.
fn ranges(line: &str) -> Vec<(RangeInclusive<u16>, u16)> {
    let mut words = line.split(' ');
    let port = words.nth(1).and_then(|address| {
        let (_, port) = address.split('@').next()?.rsplit_once(':')?;
        port.parse().ok()
    });
    let range = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some((first.parse().ok()?..=last.parse().ok()?, port?))
    };
    words.skip(6).filter_map(range).collect()
}
