use leasehold::{Acquire, Guard, LockRuntime, Owner, Released};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};
use tokio::select;

use crate::support::{World, at_most_polls, millis, on_every_store, secs};

const NAME: &str = World::NAME;

fn acquiring(locks: &LockRuntime, owner: Option<&Owner>) -> Acquire {
    let acquire = locks.lock(NAME).unwrap().acquire();
    match owner {
        Some(owner) => acquire.owner(owner),
        None => acquire,
    }
}

/// What an acquire meets that is dropped somewhere on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// Nothing: the store answers at the first poll.
    None,
    /// The request takes 10 ms.
    SlowRequest,
    /// The reply takes 10 ms.
    SlowReply,
    /// The first reply is lost.
    LostReply,
    /// The first request is lost.
    LostRequest,
    /// The first request arrives when everything is over.
    LateRequest,
    /// Somebody else holds the lock for 300 ms.
    Taken,
    /// Somebody else holds the lock for 300 ms, and every reply takes 10 ms.
    TakenAndSlow,
}

impl Obstacle {
    const ALL: [Self; 8] = [
        Self::None,
        Self::SlowRequest,
        Self::SlowReply,
        Self::LostReply,
        Self::LostRequest,
        Self::LateRequest,
        Self::Taken,
        Self::TakenAndSlow,
    ];

    fn inject(self, world: &World) {
        let gate = Gate::new();
        let fault = match self {
            Self::None | Self::Taken => return,
            Self::SlowRequest => Fault::Delay(gate.clone()),
            Self::SlowReply | Self::TakenAndSlow => Fault::DelayReply(gate.clone()),
            Self::LostReply => Fault::LoseReply,
            Self::LostRequest => Fault::LoseRequest,
            Self::LateRequest => Fault::LateRequest,
        };
        let rule = Rule::new(fault).on(CommandKind::Acquire);
        let slow = self == Self::TakenAndSlow;
        world.store.inject(if slow { rule.always() } else { rule });
        world.let_through(gate, millis(10));
    }

    async fn hold(self, world: &World) -> Option<Guard> {
        if !matches!(self, Self::Taken | Self::TakenAndSlow) {
            return None;
        }
        let line = world.another_line();
        Some(line.runtime(99).lock(NAME).unwrap().acquire().renew(false).await.unwrap())
    }
}

/// Drops an acquire after its n-th poll; whether it was done by then.
async fn dropped_after(n: usize, obstacle: Obstacle, by_owner: bool) -> bool {
    let world = World::new();
    let locks = world.runtime(1);
    let owner = by_owner.then(|| locks.owner());
    let other = obstacle.hold(&world).await;
    obstacle.inject(&world);
    let task = tokio::spawn(at_most_polls(n, acquiring(&locks, owner.as_ref())));
    world.pass(millis(300)).await;
    drop(other);
    world.pass(secs(8)).await;
    let outcome = task.await.unwrap();
    let done = outcome.is_some();
    if let Some(guard) = outcome {
        assert!(guard.unwrap().is_held());
    }
    // What is still on its way arrives; the reaper has had its time.
    world.store.heal();
    world.store.deliver_late().await;
    world.pass(millis(100)).await;
    let left = world.holder(NAME).await;
    assert!(left.is_none(), "{obstacle:?}, poll {n}: {left:?}");
    let renewed = world.store.sent(CommandKind::Renew);
    world.pass(secs(30)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), renewed, "{obstacle:?}, poll {n}");
    done
}

#[tokio::test]
async fn an_acquire_dropped_after_any_poll_leaves_nothing() {
    for obstacle in Obstacle::ALL {
        for by_owner in [false, true] {
            let mut polls = 0;
            while !dropped_after(polls, obstacle, by_owner).await {
                polls += 1;
                assert!(polls < 200, "{obstacle:?} never ends");
            }
            let least = if obstacle == Obstacle::None { 1 } else { 2 };
            assert!(polls >= least, "{obstacle:?} was done after {polls} polls");
        }
    }
}

/// The control: without the reaper, which dies with its tokio runtime, a dropped acquire does
/// leave a lease; it is not renewed and expires.
#[test]
fn without_the_reaper_a_dropped_acquire_leaves_one_lease_that_expires() {
    let world = World::new();
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    world.store.inject(Rule::new(Fault::Hang { executed: true }).on(CommandKind::Acquire));
    let dropped = tokio.block_on(async {
        let locks = world.runtime(1);
        let mut acquire = Box::pin(acquiring(&locks, None));
        assert!(crate::support::poll_once(acquire.as_mut()).is_pending());
        (locks, acquire)
    });
    drop(tokio);
    drop(dropped);
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    other.block_on(async {
        world.pass(secs(9)).await;
        assert!(world.holder(NAME).await.is_some());
        world.pass(secs(1)).await;
        assert!(world.holder(NAME).await.is_none());
        assert_eq!(world.store.sent(CommandKind::Renew), 0);
    });
}

on_every_store! {
    async fn a_cancelled_acquire_followed_by_another_of_the_same_owner_gets_the_lock(world: World) {
        let locks = world.runtime(1);
        let owner = locks.owner();
        for fault in [Fault::Hang { executed: true }, Fault::Hang { executed: false }, Fault::Delay(Gate::new())] {
            world.store.inject(Rule::new(fault).on(CommandKind::Acquire));
            assert!(at_most_polls(1, acquiring(&locks, Some(&owner))).await.is_none());
            let again = tokio::spawn(acquiring(&locks, Some(&owner)));
            world.until("the second acquire is done", async || again.is_finished()).await;
            let guard = again.await.unwrap().unwrap();
            // The first one's command arrives while the second's lease is held.
            world.store.deliver_late().await;
            assert!(guard.is_held());
            assert_eq!(world.holder(NAME).await.unwrap().id, guard.id());
            assert_eq!(guard.release().await.unwrap(), Released::Ended);
            world.store.deliver_late().await;
            assert!(world.holder(NAME).await.is_none());
        }
    }

    async fn a_cancelled_release_leaves_the_rest_to_the_reaper(world: World) {
        let locks = world.runtime(1);
        for polls in 0..2 {
            let guard = acquiring(&locks, None).await.unwrap();
            let lease = guard.lease();
            world.store.inject(Rule::new(Fault::Hang { executed: false }).on(CommandKind::Release));
            assert!(at_most_polls(polls, guard.release()).await.is_none());
            assert!(!lease.is_held(), "the hold is off in memory at once");
            if polls == 0 {
                // Nothing was sent: the reaper's command meets the fault, and is the last to.
                world.store.heal();
            }
            world.until("the reaper tried", async || world.store.sent(CommandKind::Release) > polls).await;
            if polls > 0 {
                world.until_free(NAME).await;
            }
            let _ = locks.force_release(NAME).await.unwrap();
        }
    }

    async fn a_cancelled_acquire_that_waits_leaves_the_holder_alone(world: World) {
        let (holder, waiter) = (world.runtime(1), world.another_line().runtime(2));
        let guard = acquiring(&holder, None).await.unwrap();
        let waiting = tokio::spawn(acquiring(&waiter, None));
        let line = world.clone();
        world.until("it has tried", async || line.holder(NAME).await.is_some()).await;
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
        assert_eq!(guard.release().await.unwrap(), Released::Ended);
        assert!(world.holder(NAME).await.is_none());
    }
}

/// With the store out of reach, whatever is dropped ends by itself within its ttl.
#[tokio::test]
async fn out_of_reach_at_most_one_unrenewed_lease_is_left() {
    for lost_on_the_way_back in [true, false] {
        let world = World::new();
        let locks = world.runtime(1);
        let fault = if lost_on_the_way_back { Fault::LoseReply } else { Fault::LoseRequest };
        world.store.inject(Rule::new(fault).on(CommandKind::Acquire));
        world.store.inject(Rule::new(Fault::LoseRequest).always());
        let acquire = acquiring(&locks, None);
        select! {
            biased;
            _ = acquire => panic!("nothing is heard"),
            () = world.pass(millis(100)) => {}
        }
        assert_eq!(world.holder(NAME).await.is_some(), lost_on_the_way_back);
        world.pass(millis(9_900)).await;
        assert!(world.holder(NAME).await.is_none());
        assert_eq!(world.store.sent(CommandKind::Renew), 0);
    }
}
