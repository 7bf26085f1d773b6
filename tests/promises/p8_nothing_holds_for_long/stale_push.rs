//! A process that was stopped for longer than the claim window finds an old grant in its socket.

use leasehold::{Guard, error::AcquireError};
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::faulty::{PushFault, PushRule};
use tokio::task::JoinHandle;

use crate::support::{Process, World, just_before, lock, millis, secs, step, warm_up};

type Acquiring = JoinHandle<Result<Guard, AcquireError>>;

/// A waiter that was granted the lock while it stood still, and another that has it now.
struct Scene {
    world: World,
    stopped: World,
    processes: [Process; 2],
    sleeper: Acquiring,
    holder: Guard,
}

/// Somebody else holds the lock, and the stopped process has the message that it does.
fn scene(rules: Rules) -> Scene {
    let world = World::new();
    let stopped = world.another_line();
    let mut processes = [Process::new(), Process::new()];
    let locks = processes[0].within(|| stopped.start(stopped.builder(2).seam(rules)));
    let others = processes[1].within(|| [1, 3].map(|seed| world.runtime(seed)));
    let first = block_on(&processes[1], async {
        warm_up(&world, &others[0]).await;
        lock(&others[0]).acquire().await.unwrap()
    });
    let sleeper = processes[0].spawn(lock(&locks).acquire().wait_forever());
    pass(&world, &processes, millis(1_000));
    let next = processes[1].spawn(lock(&others[1]).acquire());
    pass(&world, &processes, millis(1));
    // Stopped: its message lies in the socket.
    stopped.store.inject_push(PushRule::new(PushFault::Delay).always());
    let wakes = world.now() + secs(5);
    processes[0].pause_until(wakes);
    block_on(&processes[1], first.release()).unwrap();
    pass(&world, &processes, just_before(wakes.saturating_since(world.now())));
    assert_eq!(stopped.store.held_pushes(), 1);
    let holder = block_on(&processes[1], next).unwrap().unwrap();
    assert!(holder.is_held());
    processes[0].pause_until(world.now());
    stopped.store.heal();
    std::mem::forget((locks, others));
    Scene { world, stopped, processes, sleeper, holder }
}

fn block_on<T>(process: &Process, future: impl Future<Output = T>) -> T {
    process.within(tokio::runtime::Handle::current).block_on(future)
}

/// Lets time pass for all processes.
fn pass(world: &World, processes: &[Process; 2], time: std::time::Duration) {
    let end = world.now() + time;
    loop {
        for process in processes {
            process.run(world.now());
        }
        if world.now() >= end {
            return;
        }
        step(world.clock(), processes, end.saturating_since(world.now()));
    }
}

impl Scene {
    /// Whether the sleeper has the lock beside the holder when it wakes: it reads the message
    /// before anything else, or only after its timers.
    fn believes_at_once(self, message_first: bool) -> bool {
        let Self { world, stopped, processes, sleeper, holder } = self;
        if message_first {
            stopped.store.deliver_pushes();
        }
        processes[0].run(world.now());
        stopped.store.deliver_pushes();
        for _ in 0..10 {
            pass(&world, &processes, millis(50));
            assert!(holder.is_held());
            if sleeper.is_finished() {
                return true;
            }
        }
        // It waits on, and gets the lock when it is free.
        block_on(&processes[1], holder.release()).unwrap();
        pass(&world, &processes, millis(1));
        let guard = block_on(&processes[0], sleeper).unwrap().unwrap();
        assert!(guard.is_held());
        drop(guard);
        pass(&world, &processes, millis(1));
        false
    }
}

#[test]
fn an_old_grant_is_not_believed() {
    for message_first in [true, false] {
        assert!(!scene(Rules::default()).believes_at_once(message_first), "{message_first}");
    }
}

/// The control: counted from its arrival, the old grant makes two believers.
#[test]
fn control_a_grant_counted_from_its_arrival_makes_two_believers() {
    let rules = Rules { push_counts_from: |_, arrived_at| arrived_at, ..Rules::default() };
    assert!(scene(rules).believes_at_once(true));
}

/// A process that was away for less than its claim window believes what is left of it, and its
/// renewal comes in time.
#[test]
fn a_grant_that_is_young_enough_is_believed() {
    let world = World::new();
    let processes = [Process::new(), Process::new()];
    let locks = processes[0].within(|| world.another_line().runtime(2));
    let other = processes[1].within(|| world.runtime(1));
    let first = block_on(&processes[1], async {
        warm_up(&world, &other).await;
        lock(&other).acquire().await.unwrap()
    });
    let waiting = processes[0].spawn(lock(&locks).acquire());
    pass(&world, &processes, millis(1));
    block_on(&processes[1], first.release()).unwrap();
    // It stands still, for most of its window.
    world.clock().advance(millis(2_000));
    pass(&world, &processes, millis(0));
    let guard = block_on(&processes[0], waiting).unwrap().unwrap();
    assert!(guard.is_held());
    pass(&world, &processes, secs(60));
    assert!(guard.is_held());
    drop(guard);
    pass(&world, &processes, millis(1));
}
