//! How long counters are kept: a retention out of range is moved into it, on both stores alike.

use std::time::Duration;

use leasehold_core::{
    FencePolicy, FenceSettings,
    store::{Inspection, ReleaseAnswer},
};
use leasehold_testkit::contract::{
    MemorySubject, RedisSubject, Scene, StoreUnderTest, alice, secs,
};

const MIN: Duration = FenceSettings::MIN_RETENTION;
const MAX: Duration = FenceSettings::MAX_RETENTION;

async fn scenes(retention: Duration) -> [Scene; 2] {
    let fencing = FenceSettings::default().policy(FencePolicy::TimeFloor).retention(retention);
    [MemorySubject::start(fencing).await, RedisSubject::start(fencing).await].map(Scene::new)
}

/// Grants twice at what may be one instant, and expects tokens that grow and are kept.
async fn grants(scene: &Scene) {
    let mut last = None;
    for number in 1..3 {
        let granted = scene.granted(alice(number)).await;
        assert!(Some(granted.first) > last, "{granted:?} after {last:?}");
        assert_eq!(scene.release(alice(number), granted.first).await, ReleaseAnswer::Released);
        last = Some(granted.last);
    }
    assert_eq!(scene.inspect().await, Inspection::Free { last_fence: last });
}

async fn is_kept_for(retention: Duration, expected: Duration) {
    for scene in scenes(retention).await {
        grants(&scene).await;
        scene.pass(expected.saturating_sub(secs(60))).await;
        assert!(scene.free().await.is_some(), "{retention:?}");
        scene.pass(secs(60)).await;
        assert_eq!(scene.free().await, None, "{retention:?}");
    }
}

#[tokio::test]
async fn a_retention_that_is_too_short_becomes_the_shortest() {
    is_kept_for(Duration::ZERO, MIN).await;
}

#[tokio::test]
async fn a_retention_that_is_too_long_becomes_the_longest() {
    is_kept_for(Duration::MAX, MAX).await;
}
