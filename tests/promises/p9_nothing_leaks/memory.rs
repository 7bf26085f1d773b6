use std::{pin::pin, sync::Arc, time::Duration};

use leasehold::{
    Footprint, LockRuntime,
    store::{FenceSettings, MemoryStore},
};
use leasehold_testkit::{CommandKind, Fault, ManualClock, Rule, SeededEntropy};

use crate::support::{World, at_most_polls, millis, poll_once, secs};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// An embedded runtime on a store that nothing stands in front of.
struct Bare {
    clock: ManualClock,
    store: Arc<MemoryStore>,
    locks: LockRuntime,
}

impl Bare {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::new(Arc::new(clock.clone()), FenceSettings::default()));
        let locks = LockRuntime::builder()
            .clock(Arc::new(clock.clone()))
            .entropy(Arc::new(SeededEntropy::new(1)))
            .on_store(Arc::clone(&store) as _)
            .unwrap();
        Self { clock, store, locks }
    }

    /// How much the runtime and its store keep.
    fn remembered(&self) -> usize {
        let Footprint { watched, pending, watermarks, .. } = self.locks.footprint();
        watched + pending + watermarks + self.store.known_names()
    }
}

#[tokio::test]
async fn the_embedded_store_forgets_idle_names() {
    let bare = Bare::new();
    for n in 0..100 {
        let lock = bare.locks.lock(format!("idle/{n}")).unwrap();
        let guard = lock.acquire().await.unwrap();
        guard.reenter().await.unwrap().release().await.unwrap();
        guard.release().await.unwrap();
    }
    assert_eq!(bare.store.known_names(), 100, "the counters are kept for their retention");
    // An eighth longer, so that most grants need not refresh them.
    bare.clock.advance((7 * DAY + 7 * DAY / 8).saturating_sub(millis(1)));
    assert_eq!(bare.store.known_names(), 100);
    bare.clock.advance(millis(1));
    assert_eq!(bare.store.known_names(), 0);
}

#[tokio::test]
async fn looking_at_names_keeps_nothing() {
    let bare = Bare::new();
    for n in 0..100 {
        bare.locks.inspect(format!("idle/{n}")).await.unwrap();
        let _ = bare.locks.force_release(format!("idle/{n}")).await.unwrap();
    }
    assert_eq!((bare.store.known_names(), bare.remembered()), (0, 0));
}

/// Guards, owners, cancelled acquires, waiters and losses: a week later nobody knows of them.
#[tokio::test]
async fn a_runtime_forgets_idle_names() {
    let bare = Bare::new();
    let owner = bare.locks.owner();
    for n in 0..100 {
        let lock = bare.locks.lock(format!("idle/{n}")).unwrap();
        let guard = lock.acquire().owner(&owner).await.unwrap();
        let inner = guard.reenter().await.unwrap();
        assert!(poll_once(pin!(lock.acquire())).is_pending());
        assert!(lock.try_acquire().await.unwrap().is_none());
        match n % 3 {
            0 => drop((guard, inner)),
            1 => {
                inner.release().await.unwrap();
                guard.release().await.unwrap();
            }
            _ => {
                let _ = bare.locks.force_release(format!("idle/{n}")).await.unwrap();
                drop((guard.reenter().await.unwrap_err(), guard, inner));
            }
        }
    }
    // The control: at this moment they are all remembered.
    assert!(bare.remembered() >= 200, "{}", bare.remembered());
    assert_eq!(format!("{owner:?}").matches("idle/").count(), 0, "an owner forgets at once");
    bare.clock.travel(secs(1)).await;
    // Watermarks have two generations of ten minutes, the store's counters live for a week.
    for _ in 0..3 {
        bare.clock.advance(3 * DAY);
        bare.clock.travel(millis(1)).await;
        bare.locks.lock("probe").unwrap().acquire().await.unwrap().release().await.unwrap();
    }
    // The probe itself, in the store and among the watermarks.
    assert_eq!(bare.remembered(), 2, "{:?}", bare.locks.footprint());
}

/// Without the store's and the watermarks' memory: what is watched and pending is gone at once.
#[tokio::test]
async fn the_watch_ends_with_the_lease_and_with_the_wait() {
    let world = World::new();
    let locks = world.start(world.builder(1).wait(secs(1)));
    let watched = |locks: &LockRuntime| locks.footprint().watched;
    assert_eq!(watched(&locks), 0);
    let guard = locks.lock("idle/1").unwrap().acquire().await.unwrap();
    assert_eq!(watched(&locks), 1);
    guard.release().await.unwrap();
    assert_eq!(watched(&locks), 0);
    // An acquire that is dropped takes its watch along, without waiting for the claim window.
    world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Acquire).times(50));
    for _ in 0..50 {
        let acquire = locks.lock("idle/1").unwrap().acquire();
        assert!(at_most_polls(1, acquire).await.is_none());
    }
    assert_eq!(watched(&locks), 0);
    world.settle().await;
    assert!(world.holder("idle/1").await.is_none());
    // A lost lease is watched no longer than until its deadline, whether its guard lives or not.
    let lost = locks.lock("idle/1").unwrap().acquire().await.unwrap();
    let _ = locks.force_release("idle/1").await.unwrap();
    world.pass(secs(10)).await;
    assert!(!lost.is_held());
    assert_eq!(watched(&locks), 0);
}
