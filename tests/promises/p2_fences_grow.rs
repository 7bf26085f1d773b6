//! P2, fences only grow: on the embedded store, across a loss of everything and a restart.

use std::sync::Arc;

use leasehold::{
    Fence, LockRuntime,
    store::{FencePolicy, FenceSettings, MemoryStore},
};
use leasehold_core::LockStore;
use leasehold_testkit::{ManualClock, SeededEntropy};

use crate::support::{World, nanos, secs};

const NAME: &str = World::NAME;

/// The fence of a lease that is released at once.
async fn fence(locks: &LockRuntime) -> Fence {
    let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
    let fence = guard.fence();
    guard.release().await.unwrap();
    fence
}

/// A runtime of its own, without memory of any token, on a store.
fn stranger(clock: &ManualClock, store: &Arc<MemoryStore>, seed: u64) -> LockRuntime {
    LockRuntime::builder()
        .clock(Arc::new(clock.clone()))
        .entropy(Arc::new(SeededEntropy::new(seed)))
        .on_store(Arc::clone(store) as Arc<dyn LockStore>)
        .unwrap()
}

fn store(clock: &ManualClock, policy: FencePolicy) -> Arc<MemoryStore> {
    let settings = FenceSettings::default().policy(policy);
    Arc::new(MemoryStore::new(Arc::new(clock.clone()), settings))
}

#[tokio::test]
async fn fences_grow_over_grants_losses_and_restarts() {
    let clock = ManualClock::new();
    let mut held = store(&clock, FencePolicy::TimeFloor);
    let mut last = fence(&stranger(&clock, &held, 1)).await;
    for seed in 2..100 {
        match seed % 4 {
            0 => held.clear(),
            // Longer than a counter is kept.
            1 => clock.advance(secs(8 * 24 * 3600)),
            // The program starts anew, with nothing but the time of day.
            2 => held = store(&clock, FencePolicy::TimeFloor),
            _ => {}
        }
        // Two grants are at least a microsecond apart, as on any real server.
        clock.advance(nanos(1_000));
        let next = fence(&stranger(&clock, &held, seed)).await;
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}

/// The control: a plain counter begins again, unless the same runtime remembers.
#[tokio::test]
async fn a_plain_counter_repeats_where_nobody_remembers() {
    let clock = ManualClock::new();
    let store = store(&clock, FencePolicy::Counter);
    let one = stranger(&clock, &store, 1);
    let before = fence(&one).await;
    store.clear();
    assert_eq!(fence(&stranger(&clock, &store, 2)).await, before);
    store.clear();
    assert!(fence(&one).await > before, "its watermark heals the loss");
}
