//! A call that is dropped at any of its polls leaves nothing of any lock.

use leasehold::{AllLocks, LockName};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{World, at_most_polls, millis, secs};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// What a call meets that is dropped somewhere on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// Nothing: the store answers at the first poll.
    None,
    /// Every request takes 10 ms.
    SlowRequests,
    /// Every reply takes 10 ms.
    SlowReplies,
    /// The reply to the second acquire is lost.
    LostReply,
    /// The second request arrives when everything is over.
    LateRequest,
    /// Somebody else holds the second lock for 300 ms, and every reply takes 10 ms.
    TakenAndSlow,
}

const ALL: [Obstacle; 6] = [
    Obstacle::None,
    Obstacle::SlowRequests,
    Obstacle::SlowReplies,
    Obstacle::LostReply,
    Obstacle::LateRequest,
    Obstacle::TakenAndSlow,
];

impl Obstacle {
    fn inject(self, world: &World) {
        let gate = Gate::new();
        let acquire = |fault| Rule::new(fault).on(CommandKind::Acquire);
        world.store.inject(match self {
            Self::None => return,
            Self::SlowRequests => acquire(Fault::Delay(gate.clone())).always(),
            Self::SlowReplies | Self::TakenAndSlow => {
                acquire(Fault::DelayReply(gate.clone())).always()
            }
            Self::LostReply => acquire(Fault::LoseReply).lock(&LockName::new("b").unwrap()),
            Self::LateRequest => acquire(Fault::LateRequest).lock(&LockName::new("b").unwrap()),
        });
        world.let_through(gate, millis(10));
    }
}

/// Drops a call after its n-th poll; whether it was done by then.
async fn dropped_after(n: usize, obstacle: Obstacle, by_owner: bool) -> bool {
    let world = World::new();
    let locks = world.runtime(1);
    let owner = locks.owner();
    let all: AllLocks = locks.all(["c", "b", "a"]).unwrap();
    let other = match obstacle {
        Obstacle::TakenAndSlow => {
            let line = world.another_line();
            Some(line.runtime(99).lock("b").unwrap().acquire().renew(false).await.unwrap())
        }
        _ => None,
    };
    obstacle.inject(&world);
    let acquire = all.acquire();
    let acquire = if by_owner { acquire.owner(&owner) } else { acquire };
    let task = tokio::spawn(at_most_polls(n, acquire));
    world.pass(millis(300)).await;
    drop(other);
    world.pass(secs(8)).await;
    let outcome = task.await.unwrap();
    let done = outcome.is_some();
    if let Some(guard) = outcome {
        assert!(guard.unwrap().are_held());
    }
    // What is still on its way arrives; the reaper has had its time.
    world.store.heal();
    world.store.deliver_late().await;
    world.pass(millis(100)).await;
    for name in NAMES {
        let left = world.holder(name).await;
        assert!(left.is_none(), "{obstacle:?}, poll {n}: {left:?}");
    }
    let renewed = world.store.sent(CommandKind::Renew);
    world.pass(secs(30)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), renewed, "{obstacle:?}, poll {n}");
    let footprint = locks.footprint();
    assert_eq!((footprint.watched, footprint.waiting, footprint.pending), (0, 0, 0));
    done
}

#[tokio::test]
async fn a_call_dropped_after_any_poll_leaves_nothing() {
    for obstacle in ALL {
        for by_owner in [false, true] {
            let mut polls = 0;
            while !dropped_after(polls, obstacle, by_owner).await {
                polls += 1;
                assert!(polls < 200, "{obstacle:?} never ends");
            }
            let least = if obstacle == Obstacle::None { 1 } else { 3 };
            assert!(polls >= least, "{obstacle:?} was done after {polls} polls");
        }
    }
}

#[tokio::test]
async fn a_release_dropped_after_any_poll_gives_everything_back() {
    for polls in 0..4 {
        let world = World::new();
        let locks = world.runtime(1);
        let guard = locks.all(NAMES).unwrap().acquire().await.unwrap();
        let leases = guard.leases();
        world.store.inject(
            Rule::new(Fault::LoseRequest)
                .on(CommandKind::Release)
                .lock(&LockName::new("b").unwrap()),
        );
        let releasing = tokio::spawn(at_most_polls(polls, guard.release()));
        world.settle().await;
        assert!(leases.iter().all(|lease| !lease.is_held()), "off in memory at once");
        world.pass(secs(9)).await;
        for name in NAMES {
            assert!(world.holder(name).await.is_none(), "{name} after {polls} polls");
        }
        drop(releasing.await.unwrap());
    }
}
