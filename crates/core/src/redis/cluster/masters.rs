use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc, time::Duration};

use super::probe::{KnownCluster, Prober, Wanted};
use crate::{
    clock::Clock,
    redis::{config::RedisConfig, endpoint::Endpoint},
    store::StoreError,
};

/// A master, and the slots that it owns.
pub(in crate::redis) struct ClusterMaster {
    pub(in crate::redis) endpoint: Endpoint,
    pub(in crate::redis) slots: Vec<RangeInclusive<u16>>,
}

/// Asks nodes of a Cluster for its masters.
pub(in crate::redis) async fn masters(
    config: &RedisConfig,
    clock: Arc<dyn Clock>,
) -> Result<Vec<ClusterMaster>, StoreError> {
    let seeds = config.address.cluster().unwrap_or_default().to_vec();
    let nothing = KnownCluster { view: None, longest: Duration::ZERO };
    let view = Arc::new(Prober::new(config, clock)).probe(seeds, nothing, Wanted::All).await?;
    let mut masters = BTreeMap::<Endpoint, Vec<_>>::new();
    for (slots, endpoint) in view.owners {
        masters.entry(endpoint).or_default().push(slots);
    }
    Ok(masters.into_iter().map(|(endpoint, slots)| ClusterMaster { endpoint, slots }).collect())
}
