use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use leasehold_core::{
    AcquisitionId, Clock, FencePolicy, Instant, RuntimeId, StoreError, StoreErrorKind,
    SystemEntropy, within,
};
use leasehold_redis::{Endpoint, RedisConfig, classify::unanswered, millis, probe};
use tokio::runtime::Handle;

use super::node::RedisNode;
use crate::{
    NodeAnswer, NodeCommand, NodeReply, QuorumNode, QuorumRules, QuorumStore, Word,
    failure::{no_replicas, not_served},
    majority,
};

/// Connects to the nodes of a quorum, and marks those that are new.
///
/// It waits until a majority counts, as long as that takes no longer than the connect timeout.
///
/// # Errors
///
/// [`StoreError`], before any lock was touched: `Definite` when no majority can be reached, `Config`
/// for a wrong password, missing rights, a server that is too old, or settings that a quorum does not
/// serve.
///
/// # Cancel safety
///
/// Dropping the future leaves nothing behind but boot marks.
pub async fn connect_quorum(
    config: &RedisConfig,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    runtime_id: RuntimeId,
) -> Result<QuorumStore<RedisNode>, StoreError> {
    let store = lazy_quorum(config, Arc::clone(&clock), runtime)?;
    let limit = config.connect_timeout;
    let until = clock.now() + limit;
    loop {
        let looks = looks(&store, &*clock, (limit, config.quorum.patience()), runtime_id).await?;
        let Some(rest) = rest(&looks)? else { return Ok(store) };
        if clock.now() + rest > until {
            let what = "no majority of the quorum counts yet; locks are granted from then on";
            tracing::warn!(in_ms = millis(rest), "{what}");
            return Ok(store);
        }
        clock.sleep_until(clock.now() + rest + Duration::from_millis(2)).await;
    }
}

/// As [`connect_quorum`], but sends nothing: the first command connects.
///
/// # Errors
///
/// [`StoreError`] of kind `Config` when the settings cannot work.
pub fn lazy_quorum(
    config: &RedisConfig,
    clock: Arc<dyn Clock>,
    runtime: Handle,
) -> Result<QuorumStore<RedisNode>, StoreError> {
    check(config)?;
    let longest = Arc::new(AtomicU64::new(0));
    let open = |place: &Endpoint| RedisNode::new(&config.at(place)?, &clock, &runtime, &longest);
    let places = config.address.quorum().unwrap_or_default();
    let nodes = places.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let (rules, entropy) = (QuorumRules::default(), Arc::new(SystemEntropy));
    QuorumStore::new(nodes, config.quorum, rules, clock, entropy, runtime)
}

pub(super) fn check(config: &RedisConfig) -> Result<(), StoreError> {
    config.check().map_err(|error| not_served(error.to_string(), "correct the setting"))?;
    if config.acks.are_asked() {
        return Err(no_replicas());
    }
    if config.fencing.policy == FencePolicy::Counter {
        let what = "the fences of a quorum come from clocks, and the policy asks for counters";
        return Err(not_served(what, "use FencePolicy::TimeFloor"));
    }
    Ok(())
}

/// Checks every node, and asks it for a vote that changes nothing. When a majority has answered, the
/// others have as long as a node may take: one that is late or away holds nobody up.
async fn looks(
    store: &QuorumStore<RedisNode>,
    clock: &dyn Clock,
    (limit, patience): (Duration, Duration),
    runtime_id: RuntimeId,
) -> Result<Vec<NodeReply>, StoreError> {
    let (name, id) = (probe(runtime_id)?, AcquisitionId::new(runtime_id, 0));
    let word = Word::Settle { attempt: 1, fence: 1 };
    let command = NodeCommand { name, id, word };
    let deadline: Instant = clock.now() + limit;
    let look = async |node: &RedisNode| {
        node.check(&command.name, runtime_id, deadline).await?;
        node.send(command.clone(), deadline).await
    };
    let mut looking: FuturesUnordered<_> = store.nodes().iter().map(look).collect();
    let (nodes, mut until, mut looks) = (store.nodes().len(), deadline, Vec::new());
    while let Some(Some(look)) = within(clock, until, looking.next()).await {
        looks.push(look);
        if looks.iter().filter(|look| look.is_ok()).count() == majority(nodes) {
            until = until.min(clock.now() + patience);
        }
    }
    looks.resize_with(nodes, || Err(unanswered()));
    Ok(looks)
}

/// How long until a majority counts, or `None` if it does.
fn rest(looks: &[NodeReply]) -> Result<Option<Duration>, StoreError> {
    let is_config = |error: &&StoreError| error.kind() == StoreErrorKind::Config;
    if let Some(error) = looks.iter().filter_map(|look| look.as_ref().err()).find(is_config) {
        return Err(error.clone());
    }
    let mut rests: Vec<_> = looks
        .iter()
        .filter_map(|look| match look {
            Ok(NodeAnswer::Out { rest }) => Some(rest.unwrap_or(Duration::from_millis(20))),
            Ok(_) => Some(Duration::ZERO),
            Err(_) => None,
        })
        .collect();
    let needed = majority(looks.len());
    rests.sort_unstable();
    if let Some(rest) = rests.get(needed - 1) {
        return Ok((!rest.is_zero()).then_some(*rest));
    }
    let failed = looks.iter().find_map(|look| look.as_ref().err());
    let why = failed.map_or_else(String::new, |error| format!(": {}", error.what()));
    let what = format!(
        "{} of {} nodes of the quorum can be reached, which is no majority{why}",
        rests.len(),
        looks.len()
    );
    let remedy = "check the nodes, their addresses and the network";
    Err(StoreError::new(StoreErrorKind::Definite, what, remedy))
}
