use std::slice;

use leasehold_testkit::{
    FaultProxy, RedisServer, SentinelGroup,
    proxy::{Counts, Direction, Storm},
};

use crate::support::proxied::ProxiedCluster;

/// Where the locks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    One,
    /// Three masters.
    Cluster,
    /// A master, two replicas and three Sentinels, which fail over when it is silent for a second.
    Sentinel,
}

/// The servers of the locks, each behind a proxy; those of a Sentinel group are not, because they
/// replicate from each other where the Sentinels say. What a proxy would do, they suffer themselves.
#[derive(Debug)]
pub(crate) enum Site {
    One(FaultProxy, Box<RedisServer>),
    Cluster(Box<ProxiedCluster>),
    Sentinel(Box<SentinelGroup>),
}

impl Site {
    pub(crate) fn start(topology: Topology) -> Self {
        match topology {
            Topology::One => {
                let server = RedisServer::start();
                Self::One(FaultProxy::before(&server), server.into())
            }
            Topology::Cluster => Self::Cluster(ProxiedCluster::start().into()),
            Topology::Sentinel => Self::Sentinel(SentinelGroup::start().into()),
        }
    }

    /// The address, which leads to the proxies where there are some.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::One(proxy, _) => proxy.url(),
            Self::Cluster(proxied) => proxied.url(),
            Self::Sentinel(group) => group.url(),
        }
    }

    pub(crate) fn servers(&self) -> &[RedisServer] {
        match self {
            Self::One(_, server) => slice::from_ref(server),
            Self::Cluster(proxied) => proxied.cluster.servers(),
            Self::Sentinel(group) => group.servers(),
        }
    }

    fn proxies(&self) -> &[FaultProxy] {
        match self {
            Self::One(proxy, _) => slice::from_ref(proxy),
            Self::Cluster(proxied) => &proxied.proxies,
            Self::Sentinel(_) => &[],
        }
    }

    /// The servers that have no proxy before them.
    fn bare(&self) -> &[RedisServer] {
        match self {
            Self::Sentinel(group) => group.servers(),
            _ => &[],
        }
    }

    /// Removes all data of a server, if it takes that: a replica does not.
    pub(crate) fn lose(&self, number: usize) {
        let lost = self.servers()[number].try_query::<String>(&["FLUSHALL"]);
        assert!(lost.is_ok() || matches!(self, Self::Sentinel(_)), "{lost:?}");
    }

    /// Ends what goes on between the servers: all of them have what the master has.
    pub(crate) fn settle(&self) {
        if let Self::Sentinel(group) = self {
            group.heal();
        }
    }

    /// Starts a server again, without its data.
    pub(crate) fn restart(&self, number: usize) {
        self.servers()[number].restart();
    }

    pub(crate) fn storm(&self, storm: Storm) {
        self.reset_bare();
        for (number, proxy) in (0..).zip(self.proxies()) {
            proxy.storm(Storm { seed: storm.seed ^ number, ..storm });
        }
    }

    /// Ends the storm, and sends the copies of what is long over.
    pub(crate) fn calm(&self) {
        self.proxies().iter().for_each(FaultProxy::calm);
        self.proxies().iter().for_each(|proxy| drop(proxy.replay()));
    }

    pub(crate) fn reset(&self) {
        for proxy in self.proxies() {
            proxy.reset_all();
        }
        self.reset_bare();
    }

    fn reset_bare(&self) {
        for server in self.bare() {
            server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
    }

    pub(crate) fn black_hole(&self, direction: Direction) {
        self.proxies().iter().for_each(|proxy| proxy.black_hole(direction));
        self.bare().iter().for_each(RedisServer::stop_signal);
    }

    /// Refuses connections; a Sentinel group fails over instead, unless it is about to in any case.
    pub(crate) fn refuse(&self) {
        self.proxies().iter().for_each(FaultProxy::refuse);
        if let Self::Sentinel(group) = self {
            let command = ["SENTINEL", "FAILOVER", SentinelGroup::MASTER];
            drop(group.sentinels()[0].try_query::<String>(&command));
        }
    }

    pub(crate) fn accept(&self) {
        self.proxies().iter().for_each(FaultProxy::accept);
    }

    pub(crate) fn heal(&self) {
        self.proxies().iter().for_each(FaultProxy::heal);
        self.bare().iter().for_each(RedisServer::cont_signal);
    }

    /// What each proxy has seen.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Counts> {
        self.proxies().iter().map(FaultProxy::counts)
    }
}
