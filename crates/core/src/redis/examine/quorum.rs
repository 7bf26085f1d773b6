use futures_util::future::join_all;

use super::{examiner::Examiner, server::Visit};
use crate::{
    diagnosis::facts::{Facts, ServerFacts, Topology},
    redis::{address::RedisAddress, classify::classify_dial, place::Place, store::probe},
};

/// Examines all nodes of a quorum, side by side.
pub(super) async fn gather(examiner: &Examiner, nodes: &[Place]) -> Facts {
    let servers = join_all(nodes.iter().map(|place| visit(examiner, place))).await;
    Facts { topology: Topology::Server, servers }
}

async fn visit(examiner: &Examiner, place: &Place) -> ServerFacts {
    let info = match place.info(examiner.config.address.info()) {
        Ok(info) => info,
        Err(error) => {
            return ServerFacts { place: place.to_string(), told: Err(classify_dial(&error)) };
        }
    };
    let mut config = examiner.config.clone();
    config.address = RedisAddress::of_node(info);
    Visit::new(examiner, config, probe(examiner.runtime_id).ok()).facts().await
}
