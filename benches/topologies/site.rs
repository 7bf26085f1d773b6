use std::fmt;

use leasehold_testkit::{
    RedisCluster, RedisServer, SentinelGroup, cluster::slot_of, sentinel::Sentinel,
};

/// How many servers stand apart, each with a third of the names, beside a Cluster of as many masters.
const APART: usize = 3;

/// How servers work together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topology {
    /// One server.
    One,
    /// A master with two replicas, and three Sentinels.
    Sentinel,
    /// A Cluster of so many masters without replicas.
    Cluster(u16),
    /// A Cluster of three masters with a replica each.
    Replicated,
    /// Three servers that do not know each other: what a Cluster of three masters is compared with.
    Apart,
}

impl Topology {
    /// Starts its servers.
    pub(crate) fn start(self) -> Site {
        let server = || RedisServer::builder().tcp().start();
        let servers = match self {
            Self::One => Servers::Apart(vec![server()]),
            Self::Apart => Servers::Apart((0..APART).map(|_| server()).collect()),
            // The shared one does not fail over while the machine is busy.
            Self::Sentinel => Servers::Group(SentinelGroup::shared()),
            Self::Cluster(masters) => Servers::Cluster(RedisCluster::of_masters(masters)),
            Self::Replicated => Servers::Cluster(RedisCluster::with_replicas()),
        };
        Site { topology: self, servers }
    }
}

impl Topology {
    /// Whether its masters are nodes of a Cluster.
    pub(crate) fn is_cluster(self) -> bool {
        matches!(self, Self::Cluster(_) | Self::Replicated)
    }
}

/// As rows are named.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One => f.write_str("one server"),
            Self::Sentinel => f.write_str("Sentinel"),
            Self::Cluster(masters) => write!(f, "Cluster of {masters}"),
            Self::Replicated => f.write_str("Cluster of 3 + 3"),
            Self::Apart => write!(f, "{APART} servers"),
        }
    }
}

/// Servers that run.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) topology: Topology,
    servers: Servers,
}

#[derive(Debug)]
enum Servers {
    Apart(Vec<RedisServer>),
    Group(&'static SentinelGroup),
    Cluster(RedisCluster),
}

impl Site {
    /// The servers that locks live on.
    pub(crate) fn masters(&self) -> &[RedisServer] {
        match &self.servers {
            Servers::Apart(servers) => servers,
            Servers::Group(group) => &group.servers()[..1],
            Servers::Cluster(cluster) => cluster.masters(),
        }
    }

    /// The servers that copy them.
    pub(crate) fn replicas(&self) -> &[RedisServer] {
        match &self.servers {
            Servers::Apart(_) => &[],
            Servers::Group(group) => &group.servers()[1..],
            Servers::Cluster(cluster) => &cluster.servers()[cluster.masters().len()..],
        }
    }

    /// The Sentinels, if there are any.
    pub(crate) fn sentinels(&self) -> &[Sentinel] {
        match &self.servers {
            Servers::Group(group) => group.sentinels(),
            Servers::Apart(_) | Servers::Cluster(_) => &[],
        }
    }

    /// The number of the master that a lock lives on. Servers that stand apart share the names as
    /// the masters of a Cluster do.
    pub(crate) fn master_of(&self, name: &str) -> usize {
        let masters = self.masters().len();
        let slots = 16_384_usize.div_ceil(masters);
        usize::from(slot_of(&format!("{{{name}}}"))) / slots
    }

    /// The addresses of all masters, for clients that find their way by themselves.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.masters().iter().map(RedisServer::url).collect()
    }

    /// The addresses that the library is given: a runtime for each server that stands apart, one for
    /// everything else.
    pub(crate) fn addresses(&self) -> Vec<String> {
        match &self.servers {
            Servers::Apart(_) => self.urls(),
            Servers::Group(group) => vec![group.url()],
            Servers::Cluster(cluster) => vec![cluster.url()],
        }
    }

    /// The number of the address that a lock is reached by.
    pub(crate) fn address_of(&self, name: &str) -> usize {
        match &self.servers {
            Servers::Apart(_) => self.master_of(name),
            Servers::Group(_) | Servers::Cluster(_) => 0,
        }
    }

    /// A name on each master, which begins with a word.
    pub(crate) fn name_on_each(&self, word: &str) -> Vec<String> {
        let on = |master| {
            let mut names = (0_u32..).map(|number| format!("{word}-{number}"));
            names.find(|name| self.master_of(name) == master).unwrap_or_default()
        };
        (0..self.masters().len()).map(on).collect()
    }

    /// Forgets all data.
    pub(crate) fn flush(&self) {
        self.masters().iter().for_each(RedisServer::flush_all);
    }
}
