//! A lock that its process keeps idle.

use std::time::Duration;

use leasehold::{LockRuntime, LockRuntimeBuilder, ReentrantLock, Stamp, store::Inspection};

use super::{patient, wait};

/// A builder of a runtime that keeps its locks idle, for so long at most.
pub(crate) fn builder(ttl: Duration, keep_idle: Duration) -> LockRuntimeBuilder {
    let builder = patient::builder().ttl(ttl).claim_window(ttl.min(Duration::from_secs(1)));
    builder.keep_idle(keep_idle)
}

/// The longest time for which a lock can be kept idle.
pub(crate) fn longest(ttl: Duration) -> Duration {
    ttl.saturating_sub(Duration::from_millis(500))
}

/// Uses a free lock so that it is idle, its lease good for a ttl, with many fences left; returns the
/// stamp of the last lease.
pub(crate) async fn make_idle(locks: &LockRuntime, name: &str) -> Stamp {
    let lock = locks.lock(name).expect("a name");
    // The first grant of a name has one fence, the next one as many as microseconds have passed.
    use_once(&lock.clone().keep_idle(Duration::ZERO)).await;
    wait::a_moment().await;
    let last = use_once(&lock).await;
    let found = locks.inspect(name).await.expect("an answer");
    let Inspection::Held(record) = found else { panic!("it is not kept: {found:?}") };
    assert!(record.idle && record.keeps, "{record:?}");
    last
}

async fn use_once(lock: &ReentrantLock) -> Stamp {
    let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
    let stamp = guard.stamp();
    guard.release().await.expect("held to the end");
    stamp
}
