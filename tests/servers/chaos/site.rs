use std::slice;

use leasehold_testkit::{
    FaultProxy, RedisServer,
    proxy::{Counts, Direction, Storm},
};

use crate::support::proxied::ProxiedCluster;

/// Where the locks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    One,
    /// Three masters.
    Cluster,
}

/// The servers of the locks, each behind a proxy.
#[derive(Debug)]
pub(crate) enum Site {
    One(FaultProxy, Box<RedisServer>),
    Cluster(Box<ProxiedCluster>),
}

impl Site {
    pub(crate) fn start(topology: Topology) -> Self {
        match topology {
            Topology::One => {
                let server = RedisServer::start();
                Self::One(FaultProxy::before(&server), server.into())
            }
            Topology::Cluster => Self::Cluster(ProxiedCluster::start().into()),
        }
    }

    /// The address, which leads to the proxies.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::One(proxy, _) => proxy.url(),
            Self::Cluster(proxied) => proxied.url(),
        }
    }

    pub(crate) fn servers(&self) -> &[RedisServer] {
        match self {
            Self::One(_, server) => slice::from_ref(server),
            Self::Cluster(proxied) => proxied.cluster.servers(),
        }
    }

    fn proxies(&self) -> &[FaultProxy] {
        match self {
            Self::One(proxy, _) => slice::from_ref(proxy),
            Self::Cluster(proxied) => &proxied.proxies,
        }
    }

    /// Starts a server again, without its data.
    pub(crate) fn restart(&self, number: usize) {
        self.servers()[number].restart();
    }

    pub(crate) fn storm(&self, storm: Storm) {
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
    }

    pub(crate) fn black_hole(&self, direction: Direction) {
        self.proxies().iter().for_each(|proxy| proxy.black_hole(direction));
    }

    pub(crate) fn refuse(&self) {
        self.proxies().iter().for_each(FaultProxy::refuse);
    }

    pub(crate) fn accept(&self) {
        self.proxies().iter().for_each(FaultProxy::accept);
    }

    pub(crate) fn heal(&self) {
        self.proxies().iter().for_each(FaultProxy::heal);
    }

    /// What each proxy has seen.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Counts> {
        self.proxies().iter().map(FaultProxy::counts)
    }
}
