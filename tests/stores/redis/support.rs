//! Stores on private servers, and what the tests expect of their errors.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Clock, Entropy, Fence, LockName, LockStore, StoreError, StoreErrorKind,
    SystemClock, SystemEntropy, store::AcquireAnswer,
};
use leasehold_redis::{RedisConfig, RedisStore};
use leasehold_testkit::{
    Patience, RedisServer,
    contract::{Calls, ttl},
};
use tokio::runtime::Handle;

/// Far more than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A configuration whose dials end soon, when the server does not answer.
pub(crate) fn config(url: &str) -> RedisConfig {
    RedisConfig::new(url).expect("the test has an address")
}

/// Connects as a runtime of its own.
pub(crate) async fn connect_with(config: &RedisConfig) -> Result<Arc<RedisStore>, StoreError> {
    let id = SystemEntropy.runtime_id();
    RedisStore::connect(config, Arc::new(SystemClock), Handle::current(), id).await.map(Arc::new)
}

/// Connects to an address.
pub(crate) async fn connect(url: &str) -> Result<Arc<RedisStore>, StoreError> {
    connect_with(&config(url)).await
}

/// Connects to a server that lets everybody in.
pub(crate) async fn store_on(server: &RedisServer) -> Arc<RedisStore> {
    connect(&server.url()).await.expect("the server lets everybody in")
}

/// Calls that may take long.
pub(crate) fn calls(store: &Arc<RedisStore>) -> Calls {
    calls_within(store, PATIENCE)
}

/// Calls that are due soon.
pub(crate) fn calls_within(store: &Arc<RedisStore>, time: Duration) -> Calls {
    let name = LockName::new("orders/42").expect("a name");
    Calls::new(Arc::clone(store) as Arc<dyn LockStore>, &name, SystemClock.now() + time)
}

/// Acquires for a minute and expects a grant; its fence.
pub(crate) async fn granted(calls: &Calls, id: AcquisitionId) -> Fence {
    match calls.acquire(id, ttl(60), None).await {
        Ok(AcquireAnswer::Granted(granted)) => granted.first,
        other => panic!("expected a grant and got {other:?}"),
    }
}

/// Acquires as often as the server's trouble lasts; its fence.
pub(crate) async fn granted_in_the_end(store: &Arc<RedisStore>, id: AcquisitionId) -> Fence {
    let attempt = || async {
        match calls_within(store, Duration::from_secs(1)).acquire(id, ttl(60), None).await {
            Ok(AcquireAnswer::Granted(granted)) => Some(granted.first),
            Ok(other) => panic!("expected a grant and got {other:?}"),
            Err(error) if error.kind().is_transient() => None,
            Err(error) => panic!("{error}"),
        }
    };
    Patience::of(PATIENCE).until_async(attempt).await.expect("the trouble is over")
}

/// Expects an error that says what happened and what to do.
#[track_caller]
pub(crate) fn assert_says(error: &StoreError, kind: StoreErrorKind, what: &str, remedy: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.what().contains(what), "{what:?} is not in {error}");
    assert!(error.remedy().contains(remedy), "{remedy:?} is not in {error}");
}

/// Expects an error that also names the lock of the tests.
#[track_caller]
pub(crate) fn assert_says_of_lock(
    error: &StoreError,
    kind: StoreErrorKind,
    what: &str,
    remedy: &str,
) {
    assert_says(error, kind, what, remedy);
    assert!(error.to_string().contains("\"orders/42\""), "{error}");
}

/// A digest of all data, by which a test sees that nothing was written.
pub(crate) fn digest(server: &RedisServer) -> String {
    server.query(&["DEBUG", "DIGEST"])
}
