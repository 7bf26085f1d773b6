use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc, time::Duration};

use super::look::{Known, Looker, Wanted};
use crate::{
    clock::Clock,
    redis::{config::RedisConfig, place::Place},
    store::StoreError,
};

/// A master, and the slots that it owns.
pub(in crate::redis) struct Master {
    pub(in crate::redis) place: Place,
    pub(in crate::redis) slots: Vec<RangeInclusive<u16>>,
}

/// Asks nodes of a Cluster for its masters.
pub(in crate::redis) async fn masters(
    config: &RedisConfig,
    clock: Arc<dyn Clock>,
) -> Result<Vec<Master>, StoreError> {
    let seeds = config.address.cluster().unwrap_or_default().to_vec();
    let nothing = Known { view: None, longest: Duration::ZERO };
    let view = Arc::new(Looker::new(config, clock)).look(seeds, nothing, Wanted::All).await?;
    let mut masters = BTreeMap::<Place, Vec<_>>::new();
    for (slots, place) in view.owners {
        masters.entry(place).or_default().push(slots);
    }
    Ok(masters.into_iter().map(|(place, slots)| Master { place, slots }).collect())
}
