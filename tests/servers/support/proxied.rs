//! A Cluster whose nodes send clients to a proxy before each of them.

use std::collections::BTreeSet;

use leasehold_testkit::{FaultProxy, Patience, RedisServer, cluster::RedisCluster};
use redis::Value;

use super::wait;

/// How far above its own port a node listens for other nodes.
const BUS: u16 = 10_000;

#[derive(Debug)]
pub(crate) struct ProxiedCluster {
    // Before the servers: connections end first.
    pub(crate) proxies: Vec<FaultProxy>,
    pub(crate) cluster: RedisCluster,
}

impl ProxiedCluster {
    /// Three masters; returns when all of them name the proxies.
    pub(crate) fn start() -> Self {
        let cluster = RedisCluster::start();
        let proxies: Vec<_> = cluster.servers().iter().map(FaultProxy::before).collect();
        for (server, proxy) in cluster.servers().iter().zip(&proxies) {
            let bus = server.port().expect("a node has a port") + BUS;
            server.set_for_restart("cluster-announce-bus-port", &bus.to_string());
            server.set_for_restart("cluster-announce-port", &proxy.port().to_string());
            // Redis 6.2 tells of itself what it was started with.
            server.restart();
        }
        let new = Self { proxies, cluster };
        let announced: BTreeSet<_> = new.proxies.iter().map(FaultProxy::port).collect();
        let are_known = || {
            let is_well = |server: &RedisServer| {
                let info: String = server.try_query(&["CLUSTER", "INFO"]).unwrap_or_default();
                info.contains("cluster_state:ok") && owners(server) == announced
            };
            new.cluster.servers().iter().all(is_well).then_some(())
        };
        Patience::of(wait::CEILING).until(are_known).expect("all nodes name the proxies");
        new
    }

    /// The address of all proxies.
    pub(crate) fn url(&self) -> String {
        let hosts = self.proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port()));
        format!("redis+cluster://{}", hosts.collect::<Vec<_>>().join(","))
    }
}

/// The ports of the masters, as a node tells them.
fn owners(server: &RedisServer) -> BTreeSet<u16> {
    let slots: Vec<(u16, u16, Value)> = server.query(&["CLUSTER", "SLOTS"]);
    let port = |(_, _, master): &(u16, u16, Value)| {
        let Value::Array(master) = master else { return None };
        let Some(Value::Int(port)) = master.get(1) else { return None };
        u16::try_from(*port).ok()
    };
    slots.iter().filter_map(port).collect()
}
