//! A counter is kept for its retention after the last grant, on both stores alike.

use std::time::Duration;

use leasehold_core::{
    FenceSettings,
    store::{Inspection, ReleaseAnswer},
};
use leasehold_testkit::contract::{
    MemorySubject, RedisSubject, Scene, StoreUnderTest, alice, secs,
};

async fn scenes(retention: Duration) -> [Scene; 2] {
    let fencing = FenceSettings::default().retention(retention).expect("in range");
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

#[tokio::test]
async fn a_counter_is_kept_for_the_shortest_and_the_longest_retention() {
    for retention in [FenceSettings::MIN_RETENTION, FenceSettings::MAX_RETENTION] {
        for scene in scenes(retention).await {
            grants(&scene).await;
            scene.pass(retention.saturating_sub(secs(60))).await;
            assert!(scene.free().await.is_some(), "{retention:?}");
            // It may live an eighth longer, so that few grants have to refresh it.
            scene.pass(retention / 8 + secs(60)).await;
            assert_eq!(scene.free().await, None, "{retention:?}");
        }
    }
}
