use std::sync::Arc;

use futures_util::future::join_all;
use redis::{Value, cmd};

use super::{asker::Asker, examiner::Examiner, server::Visit};
use crate::{
    diagnosis::facts::{Facts, Info, Node, NotRead, Reading, ServerFacts, Topology},
    redis::{
        address::RedisAddress,
        classify::classify_dial,
        cluster::{ClusterMaster, masters, probe_in},
        config::{NodeSettings, RedisConfig},
        decode::text,
        endpoint::Endpoint,
    },
};

/// Finds the masters of a Cluster, and examines all of them.
pub(super) async fn gather(examiner: &Examiner) -> Facts {
    let found = masters(&examiner.config, Arc::clone(&examiner.clock)).await;
    let masters = match found {
        Ok(masters) => masters,
        Err(error) => {
            return Facts { topology: Topology::Cluster(Err(error)), servers: Vec::new() };
        }
    };
    let ranges = masters.iter().flat_map(|master| &master.slots);
    let slots = ranges.map(|range| u32::try_from(range.len()).unwrap_or(u32::MAX));
    let covered = slots.fold(0, u32::saturating_add);
    let topology = Topology::Cluster(Ok(covered));
    let servers = join_all(masters.iter().map(|master| visit(examiner, master))).await;
    Facts { topology, servers }
}

async fn visit(examiner: &Examiner, master: &ClusterMaster) -> ServerFacts {
    let info = match master.endpoint.info(examiner.config.address.info()) {
        Ok(info) => info,
        Err(error) => {
            let told = Err(classify_dial(&error));
            return ServerFacts { place: master.endpoint.to_string(), told };
        }
    };
    let mut config = examiner.config.clone();
    config.address = RedisAddress::of_node(info);
    config.node = Some(NodeSettings::default());
    let probe = probe_in(&master.slots, examiner.runtime_id).ok().flatten();
    Visit::new(examiner, config, probe).facts().await
}

/// What a node says about its Cluster.
pub(super) async fn node(asker: &Asker, config: &RedisConfig) -> Reading<Node> {
    let told = asker.ask(cmd("CLUSTER").arg("INFO")).await?;
    let mut info = Info::default();
    info.add(&text(&told).ok_or(NotRead::Strange)?);
    let slots = asker.ask(cmd("CLUSTER").arg("SLOTS")).await.ok();
    let place = Endpoint::of(config.address.info().addr());
    let replicas = slots.zip(place).and_then(|(slots, place)| replicas(&slots, &place));
    Ok(Node { info, replicas })
}

/// How many replicas of a master are well: `CLUSTER SLOTS` has them behind their master.
fn replicas(slots: &Value, master: &Endpoint) -> Option<usize> {
    let Value::Array(ranges) = slots else { return None };
    ranges.iter().find_map(|range| {
        let Value::Array(range) = range else { return None };
        let [_, _, Value::Array(first), replicas @ ..] = range.as_slice() else { return None };
        let [host, Value::Int(port), ..] = first.as_slice() else { return None };
        // A node that does not know its own host tells none.
        let is_host = text(host).is_none_or(|host| host.is_empty() || host == master.host);
        (is_host && *port == i64::from(master.port)).then_some(replicas.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString("id".into())])
    }

    #[test]
    fn replicas_stand_behind_their_master() {
        let host = |name: &str| Value::BulkString(name.into());
        let range = |nodes: Vec<Value>| {
            Value::Array([Value::Int(0), Value::Int(8)].into_iter().chain(nodes).collect())
        };
        let slots = Value::Array(vec![
            range(vec![node(host("a"), 1), node(host("r"), 7)]),
            range(vec![node(host("b"), 1)]),
            range(vec![node(Value::Nil, 2), node(host("r"), 8), node(host("r"), 9)]),
        ]);
        let at = |host: &str, port| replicas(&slots, &Endpoint { host: host.into(), port });
        assert_eq!(
            [at("a", 1), at("b", 1), at("c", 2), at("a", 3)],
            [Some(1), Some(0), Some(2), None]
        );
        assert_eq!(replicas(&Value::Nil, &Endpoint { host: "a".into(), port: 1 }), None);
    }
}
