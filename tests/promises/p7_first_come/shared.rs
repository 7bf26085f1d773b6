//! Tasks of one turn that want different things, and owners who meet themselves in the line.

use std::time::Duration;

use leasehold::{LeaseState, LossReason};
use leasehold_testkit::CommandKind;

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

const NAME: &str = World::NAME;

/// Each has the ttl that it asked for, and the order is kept.
#[tokio::test]
async fn tasks_of_one_runtime_may_want_different_ttls() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(&world, &one).await;
    let ttls: Vec<Duration> = vec![secs(10), secs(1), secs(1), secs(60), millis(200), secs(10)];
    let guard = lock(&two).acquire().await.unwrap();
    let tasks: Vec<_> =
        ttls.iter().map(|ttl| Waiting::on(lock(&one).acquire().ttl(*ttl).wait_forever())).collect();
    world.settle().await;
    guard.release().await.unwrap();
    let mut before = guard_fence(&world).await;
    for (ttl, task) in ttls.iter().zip(tasks) {
        let guard = task.taken(&world).await;
        assert!(guard.fence().get() >= before, "{ttl:?}");
        before = guard.fence().get() + 1;
        let left = world.holder(NAME).await.unwrap().remaining;
        assert!(left <= *ttl && guard.remaining() < left, "{ttl:?}: {left:?}");
        // It is renewed to its own ttl, and for as long as it is held.
        world.pass(*ttl).await;
        let left = world.holder(NAME).await.unwrap().remaining;
        assert!(guard.is_held() && left > ttl.mul_f64(0.6) && left <= *ttl, "{ttl:?}: {left:?}");
        world.pass(*ttl * 3).await;
        assert!(guard.is_held(), "{ttl:?}");
        guard.release().await.unwrap();
    }
    assert!(world.holder(NAME).await.is_none());
}

async fn guard_fence(world: &World) -> u64 {
    world.holder(NAME).await.map_or(0, |record| record.fence.get())
}

/// A fixed lease that comes out of the queue has its whole ttl all the same, and not more.
#[tokio::test]
async fn a_fixed_lease_out_of_the_queue_has_its_whole_ttl() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    let guard = lock(&two).acquire().await.unwrap();
    let fixed = Waiting::on(lock(&one).acquire().renew(false));
    world.settle().await;
    guard.release().await.unwrap();
    let guard = fixed.taken(&world).await;
    world.settle().await;
    assert_eq!(guard.remaining(), millis(9_900));
    assert_eq!(world.store.sent(CommandKind::Renew), 1);
    world.pass(millis(9_900)).await;
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::Expired));
    assert_eq!(world.store.sent(CommandKind::Renew), 1);
}

/// One lease of a turn ends by its `max_hold`; the next task's is not touched by that.
#[tokio::test]
async fn the_loss_of_one_lease_is_not_that_of_the_next() {
    let world = World::new();
    let locks = world.runtime(1);
    warm_up(&world, &locks).await;
    let first = lock(&locks).acquire().max_hold(secs(5)).await.unwrap();
    let [second, third] = [(); 2].map(|()| Waiting::on(lock(&locks).acquire().wait_forever()));
    world.settle().await;
    world.pass(secs(5)).await;
    assert_eq!(first.lease().state(), LeaseState::Lost(LossReason::MaxHold));
    let second = second.taken(&world).await;
    let lost = second.lost();
    // What the first does with its guard is of no concern to anybody.
    drop(first);
    world.pass(secs(30)).await;
    assert!(second.is_held());
    second.release().await.unwrap();
    let third = third.taken(&world).await;
    assert_eq!(lost.await, leasehold::LeaseEnd::Released);
    assert!(third.is_held());
}

/// Two branches of one owner that wait at once get one lease, also with others between them.
#[tokio::test]
async fn two_acquires_of_one_owner_get_the_same_lease() {
    for taken in [false, true] {
        let world = World::new();
        let (one, two) = (world.runtime(1), world.another_line().runtime(2));
        warm_up(&world, &two).await;
        let holds = lock(&two).acquire().await.unwrap();
        let holds = if taken { Some(holds) } else { holds.release().await.ok().and(None) };
        let owner = one.owner();
        let branches = tokio::spawn({
            let (lock, owner) = (lock(&one), owner.clone());
            async move {
                tokio::join!(async { lock.acquire().owner(&owner).await.unwrap() }, async {
                    lock.acquire().owner(&owner).await.unwrap()
                },)
            }
        });
        world.settle().await;
        let stranger = Waiting::queued(&world, &one).await;
        let late = Waiting::on(lock(&one).acquire().owner(&owner));
        world.settle().await;
        if let Some(holds) = holds {
            assert!(!branches.is_finished() && !late.is_over());
            holds.release().await.unwrap();
        }
        world.settle().await;
        let (a, b) = branches.await.unwrap();
        // Past the stranger: its owner has the lease already.
        let c = late.taken(&world).await;
        assert_eq!((a.id(), a.fence()), (b.id(), b.fence()));
        assert_eq!((a.id(), a.fence()), (c.id(), c.fence()));
        assert_eq!(world.holds(NAME).await, 3, "taken: {taken}");
        assert!(!stranger.is_over());
        for guard in [a, b, c] {
            assert!(guard.is_held());
            guard.release().await.unwrap();
        }
        stranger.taken(&world).await.release().await.unwrap();
        assert!(world.holder(NAME).await.is_none());
    }
}
