//! A counter is kept for its retention after the last grant, on both stores alike.

use std::{sync::Arc, time::Duration};

use leasehold::{LockRuntime, NamePattern};
use leasehold_core::{
    Entropy, FenceSettings, LockStore, SystemClock, SystemEntropy,
    store::{AcquireAnswer, Inspection, ReleaseAnswer},
};
use leasehold_redis::{RedisConfig, RedisStore};
use leasehold_testkit::{
    RedisServer,
    contract::{Calls, MemorySubject, RedisSubject, Scene, StoreUnderTest, alice, bob, secs, ttl},
};
use tokio::runtime::Handle;

const HOUR: Duration = FenceSettings::MIN_RETENTION;
const DAY: Duration = HOUR.saturating_mul(24);

fn fencing(retention: Duration) -> FenceSettings {
    FenceSettings::default().retention(retention).expect("in range")
}

async fn scenes(retention: Duration) -> [Scene; 2] {
    let (memory, redis) = (fencing(retention), fencing(retention));
    [MemorySubject::start(memory).await, RedisSubject::start(redis).await].map(Scene::new)
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

/// Grants to a client of the scene, and then to another one; expects the retention that is the longer one.
async fn grants_to_both(scene: &Scene, other: Arc<dyn LockStore>) {
    let granted = scene.granted(alice(1)).await;
    scene.release(alice(1), granted.first).await;
    let other = Calls::new(other, scene.name(), scene.subject().deadline());
    let answer = other.acquire(bob(1), ttl(60), None).await.expect("acquire");
    let AcquireAnswer::Granted(granted) = answer else { panic!("{answer:?}") };
    other.release(bob(1), granted.first, None).await.expect("release");
    scene.pass(DAY.saturating_sub(secs(60))).await;
    assert!(scene.free().await.is_some());
    scene.pass(DAY / 8 + secs(60)).await;
    assert_eq!(scene.free().await, None);
}

#[tokio::test]
async fn of_two_clients_that_disagree_the_longer_retention_counts() {
    for (one, another) in [(HOUR, DAY), (DAY, HOUR)] {
        let memory = MemorySubject::new(fencing(one));
        let other = Arc::new(memory.memory().beside(fencing(another)));
        grants_to_both(&Scene::new(Box::new(memory)), other).await;

        let redis = RedisSubject::new(fencing(one)).await;
        let config = RedisConfig::new(&redis.server().url()).expect("an address");
        let (config, id) = (config.fencing(fencing(another)), SystemEntropy.runtime_id());
        let connecting = RedisStore::connect(&config, Arc::new(SystemClock), Handle::current(), id);
        let other = Arc::new(connecting.await.expect("the server answers"));
        grants_to_both(&Scene::new(Box::new(redis)), other).await;
    }
}

#[tokio::test]
async fn a_runtime_keeps_the_counters_of_a_pattern_for_its_retention() {
    let server = RedisServer::start();
    let jobs = NamePattern::new("jobs/*").expect("a pattern");
    let fencing = fencing(DAY).retention_of(jobs, HOUR).expect("in range");
    let builder = LockRuntime::builder().fencing(fencing);
    let locks = builder.connect(&server.url()).await.expect("the server answers");
    for (name, retention) in [("jobs/4711", HOUR), ("orders/42", DAY)] {
        let guard = locks.lock(name).expect("a name").try_acquire().await.expect("free");
        guard.expect("free").release().await.expect("held");
        let left = server.query::<u64>(&["PTTL", &format!("leasehold:{{{name}}}:lease")]);
        let left = Duration::from_millis(left);
        assert!((retention..=retention / 8 * 9).contains(&left), "{name}: {left:?}");
    }
}
