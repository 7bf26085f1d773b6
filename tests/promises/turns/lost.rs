use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold::{
    ForceReleased, Lease, LeaseEnd, LeaseState, LockRuntime, LossReason,
    error::{LeaseLost, ReenterError},
    time::{Clock, SystemClock},
};

use crate::support::{Waiting, World, lock, millis, poll_once, secs, warm_up};

const NAME: &str = World::NAME;

/// P1: between two tasks a turn can be force-released too, and the offer goes with it.
#[tokio::test]
async fn an_offer_of_a_force_released_turn_is_not_taken() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)));
    warm_up(&world, &locks).await;
    let first = lock(&locks).acquire().await.unwrap();
    let mut next = Box::pin(lock(&locks).acquire().wait(secs(60)));
    assert!(poll_once(next.as_mut()).is_pending());
    first.release().await.unwrap();
    let found = world.holder(NAME).await.expect("the turn goes on, for the next task");
    let answer = locks.force_release(NAME).await.unwrap();
    let ForceReleased::Ended { lease, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(lease.id, found.id, "it ends the turn that is on offer");
    let other = world.another_line().runtime(2);
    let theirs = lock(&other).acquire().await.unwrap();
    assert!(poll_once(next.as_mut()).is_pending(), "two believers");
    let next = tokio::spawn(next);
    world.pass(millis(100)).await;
    assert!(theirs.is_held() && !next.is_finished(), "two believers");
    let before = theirs.fence();
    theirs.release().await.unwrap();
    world.settle().await;
    assert!(next.is_finished(), "it is its turn");
    let next = next.await.unwrap().unwrap();
    assert!(next.fence() > before, "{} is not above {before}", next.fence());
}

/// A re-entry that learns of a loss tells the others, who need not wait for the ttl.
#[tokio::test]
async fn a_reentry_that_finds_the_lease_gone_frees_those_who_wait() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(30)));
    let guard = lock(&locks).acquire().await.unwrap();
    let waiting = Waiting::queued(&world, &locks).await;
    world.memory().clear();
    let error = guard.reenter().await.expect_err("the server forgot the lease");
    let gone = matches!(error, ReenterError::Lost(LeaseLost { reason: LossReason::DataLost, .. }));
    assert!(gone, "{error}");
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::DataLost));
    let (next, _) = waiting.taken_within(&world, millis(100)).await;
    assert!(next.is_held(), "{:?}", next.lease().state());
}

type Live = Arc<Mutex<BTreeMap<u64, Lease>>>;

/// P5: a task that takes a lease of a turn while the turn is force-released is told of it as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_force_release_of_a_busy_turn_is_told_to_its_holder() {
    const ROUNDS: usize = 1_000;
    let locks = LockRuntime::builder().ttl(secs(30)).embedded().unwrap();
    let (live, stop) = (Live::default(), Arc::new(AtomicBool::new(false)));
    let busy = || tokio::spawn(take_turns(locks.clone(), Arc::clone(&live), Arc::clone(&stop)));
    let tasks: Vec<_> = (0..8).map(|_| busy()).collect();
    let (mut ended, mut suspects) = (0, Vec::new());
    for _ in 0..ROUNDS {
        nap(millis(1)).await;
        let answer = locks.force_release(NAME).await.unwrap();
        if let ForceReleased::Ended { fence: Some(above), .. } = answer {
            ended += 1;
            nap(Duration::from_micros(500)).await;
            let live = live.lock().unwrap();
            let older = live.range(..above.get()).map(|(_, lease)| lease);
            suspects.extend(older.filter(|lease| lease.is_held()).cloned());
        }
    }
    stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    assert!(ended > 0, "no turn was there to be ended");
    for lease in suspects {
        let end = lease.lost().await;
        assert_ne!(end, LeaseEnd::Released, "{ended} ended, {} was not told", lease.fence());
    }
}

/// Acquires and releases without a pause, and holds the lock for longer now and then.
async fn take_turns(locks: LockRuntime, live: Live, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let guard = lock(&locks).acquire().await.unwrap();
        let fence = guard.fence().get();
        live.lock().unwrap().insert(fence, guard.lease());
        if fence.is_multiple_of(64) {
            nap(millis(2)).await;
        }
        live.lock().unwrap().remove(&fence);
        // It may be lost, which is what the test is about.
        let _ = guard.release().await;
    }
}

/// Lets real time pass.
async fn nap(time: Duration) {
    SystemClock.sleep_until(SystemClock.now() + time).await;
}
