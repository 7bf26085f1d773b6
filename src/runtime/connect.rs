use std::sync::Arc;

use leasehold_core::{Clock, LockStore, RuntimeId, StoreError};
use leasehold_quorum::{connect_quorum, lazy_quorum};
use leasehold_redis::{ClusterStore, RedisConfig, RedisStore};
use tokio::runtime::Handle;

/// Connects to what an address leads to: as [`RedisStore::connect`], on a Cluster as
/// [`ClusterStore::connect`], on a quorum as [`connect_quorum`].
///
/// # Errors
///
/// [`StoreError`], as these functions.
///
/// # Cancel safety
///
/// Dropping the future leaves nothing behind but, at worst, probe keys that live a second.
pub async fn connect_store(
    config: &RedisConfig,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    runtime_id: RuntimeId,
) -> Result<Arc<dyn LockStore>, StoreError> {
    if config.address.quorum().is_some() {
        return Ok(Arc::new(connect_quorum(config, clock, runtime, runtime_id).await?));
    }
    if config.address.cluster().is_some() {
        let store = ClusterStore::connect(config, clock, runtime, runtime_id).await?;
        return Ok(Arc::new(store));
    }
    Ok(Arc::new(RedisStore::connect(config, clock, runtime, runtime_id).await?))
}

/// As [`connect_store`], but sends nothing: the first command connects.
///
/// # Errors
///
/// [`StoreError`] of kind `Config` when the settings cannot work.
pub(super) fn connect_store_lazy(
    config: &RedisConfig,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    runtime_id: RuntimeId,
) -> Result<Arc<dyn LockStore>, StoreError> {
    if config.address.quorum().is_some() {
        return Ok(Arc::new(lazy_quorum(config, clock, runtime)?));
    }
    if config.address.cluster().is_some() {
        return Ok(Arc::new(ClusterStore::lazy(config, clock, runtime, runtime_id)?));
    }
    Ok(Arc::new(RedisStore::lazy(config, clock, runtime, runtime_id)?))
}
