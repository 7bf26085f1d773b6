use std::{
    env, fmt, io,
    path::{Path, PathBuf},
    process::Command,
};

use leasehold_testkit::{QuorumGroup, RedisServer};

use super::{load::Load, site::Site};

/// Who takes locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// Leasehold on the quorum.
    Leasehold,
    /// Leasehold on the quorum, whose process keeps idle locks.
    LeaseholdKept,
    /// Leasehold on one of the servers alone.
    LeaseholdOne,
    /// rslock, with short pauses between its tries.
    Rslock,
    /// rslock with the pauses that it has by default.
    RslockDefault,
    /// node-redlock's last release, with short pauses between its tries.
    Redlock4,
    /// node-redlock's last release with the pauses that it has by default.
    Redlock4Default,
    /// node-redlock's beta, with short pauses between its tries.
    Redlock5,
}

impl Subject {
    /// All of them, in the order of the tables. The first is what the others are compared with.
    pub(super) const ALL: [Self; 8] = [
        Self::Leasehold,
        Self::LeaseholdKept,
        Self::LeaseholdOne,
        Self::Rslock,
        Self::RslockDefault,
        Self::Redlock4,
        Self::Redlock4Default,
        Self::Redlock5,
    ];

    /// The quorums of others.
    pub(super) const PEERS: [Self; 5] =
        [Self::Rslock, Self::RslockDefault, Self::Redlock4, Self::Redlock4Default, Self::Redlock5];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "leasehold",
            Self::LeaseholdKept => "leasehold-kept",
            Self::LeaseholdOne => "leasehold-one",
            Self::Rslock => "rslock",
            Self::RslockDefault => "rslock-default",
            Self::Redlock4 => "node-redlock-4",
            Self::Redlock4Default => "node-redlock-4-default",
            Self::Redlock5 => "node-redlock-5b",
        }
    }

    /// Whether it runs at a site with a load. How long a peer pauses matters where locks are
    /// contended; where servers are down, some loads tell enough; one server is one server.
    pub(super) fn runs(self, site: Site, load: Load) -> bool {
        let is_told = site.is_whole() || [Load::Own(16), Load::HOT].contains(&load);
        let is_there = !self.is_node() || modules().is_dir();
        let has_place = match self {
            Self::RslockDefault | Self::Redlock4Default => site.is_whole() && load == Load::HOT,
            Self::LeaseholdKept => site.is_whole() && load.has_own_names(),
            Self::LeaseholdOne => site == Site::ALL[0],
            _ => true,
        };
        is_told && is_there && has_place
    }

    /// The addresses that it is given.
    pub(super) fn address(self, group: &QuorumGroup) -> String {
        let urls = || group.servers().map(RedisServer::url).collect::<Vec<_>>();
        match self {
            Self::Leasehold | Self::LeaseholdKept => group.url(),
            Self::LeaseholdOne => group.server(0).url(),
            _ => urls().join(","),
        }
    }

    /// The program of a process, without its options.
    pub(super) fn program(self) -> io::Result<Command> {
        if self.is_node() {
            let mut command = Command::new("node");
            command.arg(folder().join("main.js"));
            return Ok(command);
        }
        let mut command = Command::new(env::current_exe()?);
        command.arg("worker");
        Ok(command)
    }

    /// Whether it is written in JavaScript.
    pub(super) fn is_node(self) -> bool {
        matches!(self, Self::Redlock4 | Self::Redlock4Default | Self::Redlock5)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/quorum/node"))
}

/// What `npm` has installed.
fn modules() -> PathBuf {
    folder().join("node_modules")
}
