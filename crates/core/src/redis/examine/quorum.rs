use std::time::Duration;

use futures_util::future::join_all;
use redis::cmd;

use super::{asker::Asker, examiner::Examiner, server::Visit};
use crate::{
    diagnosis::facts::{Facts, Mark, Reading, ServerFacts, Topology},
    redis::{address::RedisAddress, classify::classify_dial, endpoint::Endpoint, store::probe},
};

/// Examines all nodes of a quorum, side by side.
pub(super) async fn gather(examiner: &Examiner, nodes: &[Endpoint]) -> Facts {
    let servers = join_all(nodes.iter().map(|place| visit(examiner, place))).await;
    Facts { topology: Topology::Quorum(examiner.config.quorum), servers }
}

/// What the boot mark of a node says, by the clock of the node.
pub(super) async fn mark(asker: &Asker, key: String) -> Reading<Mark> {
    // As lua/quorum/boot.lua reads it: whatever stands there, no more than a mark has.
    let text: String = asker.ask_for(&cmd("GETRANGE").arg(key).arg(0).arg(256).take()).await?;
    let (seconds, micros): (u64, u64) = asker.ask_for(&cmd("TIME")).await?;
    let now = Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros));
    let counts = text.split(' ').next().and_then(|first| first.parse().ok());
    let Some(counts) = counts.map(Duration::from_millis) else { return Ok(Mark::Missing) };
    let rest = counts.saturating_sub(now);
    Ok(if rest.is_zero() { Mark::Counts } else { Mark::Out(rest) })
}

async fn visit(examiner: &Examiner, place: &Endpoint) -> ServerFacts {
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
