use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use leasehold_core::{
    AcquisitionId, Clock, FencePolicy, Instant, RuntimeId, StoreError, SystemEntropy, within,
};
use leasehold_redis::{Endpoint, RedisConfig, classify::unanswered, millis, probe};
use tokio::runtime::Handle;

use super::{boot::Runs, node::RedisNode};
use crate::{
    NodeAnswer, NodeCommand, NodeReply, QuorumNode, QuorumRules, QuorumStore, Word,
    failure::{ONE_EACH, lasts, no_replicas, not_served, too_few},
    majority,
};

/// Connects to the nodes of a quorum, and marks those that are new.
///
/// It waits until a majority counts, as long as that takes no longer than the connect timeout.
///
/// # Errors
///
/// [`StoreError`], before any lock was touched: `Definite` when no majority can be reached, `Config`
/// for a wrong password, missing rights or a server that is too old at so many nodes that no majority is
/// left, for two addresses of one server, and for settings that a quorum does not serve.
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
        let rest = rest(&looks)?;
        let Some(rest) = rest.filter(|rest| clock.now() + *rest <= until) else {
            warn_of(&looks, rest);
            return Ok(store);
        };
        clock.sleep_until(clock.now() + rest + Duration::from_millis(2)).await;
    }
}

/// Warns of nodes that will not count unless somebody changes something, and if no majority counts yet.
fn warn_of(looks: &[NodeReply], rest: Option<Duration>) {
    for error in looks.iter().filter_map(|look| look.as_ref().err()).filter(|error| lasts(error)) {
        tracing::warn!("a node of the quorum cannot be used: {error}");
    }
    if let Some(rest) = rest {
        let what = "no majority of the quorum counts yet: no lock is granted before that";
        tracing::warn!(in_ms = millis(rest), "{what}");
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
    let shared = (&longest, &Arc::new(Runs::default()));
    let open = |place: &Endpoint| RedisNode::new(&config.at(place)?, &clock, &runtime, shared);
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
    let look = async |(number, node): (usize, &RedisNode)| {
        let asked = async {
            node.check(&command.name, runtime_id, deadline).await?;
            node.send(command.clone(), deadline).await
        };
        (number, asked.await)
    };
    let (nodes, mut until) = (store.nodes(), deadline);
    let mut looking: FuturesUnordered<_> = nodes.iter().enumerate().map(look).collect();
    let mut looks: Vec<NodeReply> = nodes.iter().map(|_| Err(unanswered())).collect();
    while let Some(Some((number, look))) = within(clock, until, looking.next()).await {
        looks[number] = look;
        if looks.iter().filter(|look| look.is_ok()).count() == majority(nodes.len()) {
            until = until.min(clock.now() + patience);
        }
    }
    let named = |(look, node): (NodeReply, &RedisNode)| {
        look.map_err(|error| error.from_endpoint(node.place()))
    };
    Ok(looks.into_iter().zip(nodes).map(named).collect())
}

/// How long until a majority counts, or `None` if it does.
fn rest(looks: &[NodeReply]) -> Result<Option<Duration>, StoreError> {
    let failures: Vec<_> = looks.iter().filter_map(|look| look.as_ref().err().cloned()).collect();
    // Two addresses lead to one server: always an error, however many other nodes there are.
    if let Some(error) = failures.iter().find(|error| error.remedy() == ONE_EACH) {
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
    rests.sort_unstable();
    match rests.get(majority(looks.len()) - 1) {
        Some(rest) => Ok((!rest.is_zero()).then_some(*rest)),
        None => Err(too_few(failures.len(), looks.len(), &failures, false)),
    }
}
