use std::{cell::Cell, rc::Rc, time::Duration};

use leasehold::{LockRuntime, time::Clock};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

/// How the tasks of one runtime fared that asked again and again.
#[derive(Default)]
struct Fared {
    served: Cell<usize>,
    longest: Cell<Duration>,
}

/// Lets a task ask again and again, and hold the lock for so long each time.
fn ask_forever(world: &World, locks: &LockRuntime, hold: Duration, fared: &Rc<Fared>) {
    let (lock, clock, fared) = (lock(locks), world.clock().clone(), Rc::clone(fared));
    tokio::task::spawn_local(async move {
        loop {
            let asked_at = clock.now();
            let guard = lock.acquire().wait_forever().await.unwrap();
            let waited = clock.now().saturating_since(asked_at);
            fared.longest.set(fared.longest.get().max(waited));
            fared.served.set(fared.served.get() + 1);
            clock.sleep_until(clock.now() + hold).await;
            guard.release().await.unwrap();
        }
    });
}

/// A busy runtime, with eight tasks, beside others with one each; how the latter fared.
async fn beside_a_busy_runtime(others: u64, hold: Duration) -> (Rc<Fared>, Vec<Rc<Fared>>) {
    let world = World::new();
    let busy = world.runtime(1);
    warm_up(&world, &busy).await;
    let crowd = Rc::default();
    for _ in 0..8 {
        ask_forever(&world, &busy, hold, &crowd);
    }
    // It has begun alone, before the others come.
    world.pass(millis(3)).await;
    let mut singles = Vec::new();
    let mut runtimes = Vec::new();
    for n in 0..others {
        runtimes.push(world.another_line().runtime(2 + n));
        singles.push(Rc::default());
        ask_forever(&world, runtimes.last().unwrap(), hold, singles.last().unwrap());
    }
    world.pass(secs(5)).await;
    (crowd, singles)
}

/// 50 ms and the hold that runs then, for each other runtime in the line.
#[tokio::test(flavor = "local")]
async fn nobody_is_passed_over_by_more_than_one_turn() {
    for hold in [millis(1), millis(7), millis(20), millis(49), millis(120)] {
        for others in [1, 3] {
            let (crowd, singles) = beside_a_busy_runtime(others, hold).await;
            // The busy one's turn, and a hold of each other single.
            let count = u32::try_from(others).unwrap();
            let bound = millis(50) + hold + hold * (count - 1);
            for fared in &singles {
                let longest = fared.longest.get();
                assert!(longest <= bound, "{hold:?}: waited for {longest:?}, not {bound:?}");
            }
            let served: Vec<_> = singles.iter().map(|fared| fared.served.get()).collect();
            let (least, most) = (served.iter().min().unwrap(), served.iter().max().unwrap());
            assert!(most - least <= 1, "{hold:?}: {served:?}");
            assert!(crowd.served.get() >= *most, "a turn serves one at least");
        }
    }
}

/// While others wait, a turn serves those who waited here when it began, and nobody who came later.
#[tokio::test]
async fn a_contended_turn_serves_who_waited_when_it_began() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(&world, &one).await;
    let guard = lock(&two).acquire().await.unwrap();
    let first = Waiting::queued(&world, &one).await;
    let second = Waiting::queued(&world, &one).await;
    let theirs = Waiting::queued(&world, &two).await;
    // Its own turn is over, which began alone.
    world.pass(millis(10)).await;
    guard.release().await.unwrap();
    let guard = first.taken(&world).await;
    let late = Waiting::queued(&world, &one).await;
    guard.release().await.unwrap();
    second.taken(&world).await.release().await.unwrap();
    world.settle().await;
    assert!(!late.is_over());
    theirs.taken(&world).await.release().await.unwrap();
    late.taken(&world).await.release().await.unwrap();
}

/// Alone, a turn lasts 10 ms at most, so that who comes meanwhile is not kept for long.
#[tokio::test]
async fn a_turn_that_began_alone_ends_soon() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(&world, &one).await;
    let guard = lock(&one).acquire().await.unwrap();
    let next = Waiting::queued(&world, &one).await;
    let last = Waiting::queued(&world, &one).await;
    let theirs = Waiting::queued(&world, &two).await;
    world.pass(millis(9)).await;
    guard.release().await.unwrap();
    let guard = next.taken(&world).await;
    world.pass(millis(1)).await;
    guard.release().await.unwrap();
    theirs.taken(&world).await.release().await.unwrap();
    last.taken(&world).await.release().await.unwrap();
}
