use std::time::Duration;

use leasehold::time::{Clock, Instant};
use leasehold_testkit::faulty::{PushFault, PushRule};

use crate::support::{Process, World, lock, millis, nanos, secs, step};

/// The claim window, unless it is set.
const WINDOW: Duration = Duration::from_secs(3);

/// What a waiter of another process was kept waiting for after the release, when the head of the
/// queue died so long before it.
fn delay_by_a_dead_waiter(dead_for: Duration) -> Duration {
    let world = World::new();
    let lines = [world.another_line(), world.another_line(), world.another_line()];
    let [holds, dies, waits] = [Process::new(), Process::new(), Process::new()];
    let clock = world.clock().clone();
    let released_at = clock.now() + secs(5);
    let died_at = Instant::at(released_at.since_origin().saturating_sub(dead_for));

    let locks = holds.within(|| lines[0].runtime(1));
    let sleeper = clock.clone();
    let holder = holds.spawn(async move {
        let guard = lock(&locks).acquire().await.unwrap();
        sleeper.sleep_until(released_at).await;
        guard.release().await.unwrap();
    });
    run(&world, &holds);
    let locks = dies.within(|| lines[1].runtime(2));
    drop(dies.spawn(lock(&locks).acquire()));
    run(&world, &dies);
    let locks = waits.within(|| lines[2].runtime(3));
    let waiting = waits.spawn({
        let clock = clock.clone();
        async move {
            let guard = lock(&locks).acquire().await.unwrap();
            assert!(guard.is_held());
            clock.now()
        }
    });
    run(&world, &waits);

    let all = [holds, dies, waits];
    until(&world, &all, died_at);
    let [holds, dies, waits] = all;
    // As SIGKILL: nothing of it runs again, not even destructors, and nothing is heard there.
    lines[1].store.inject_push(PushRule::new(PushFault::Lose).always());
    std::mem::forget(dies);
    let alive = [holds, waits];
    until(&world, &alive, released_at + secs(8));
    assert!(holder.is_finished() && waiting.is_finished());
    let observer = tokio::runtime::Builder::new_current_thread().build().unwrap();
    observer.block_on(waiting).unwrap().saturating_since(released_at)
}

fn run(world: &World, process: &Process) {
    process.run(world.clock().now());
}

/// Lets time pass for all processes.
fn until(world: &World, processes: &[Process], end: Instant) {
    while world.clock().now() < end {
        run_all(world, processes);
        step(world.clock(), processes, end.saturating_since(world.clock().now()).min(millis(20)));
    }
    run_all(world, processes);
}

fn run_all(world: &World, processes: &[Process]) {
    for process in processes {
        run(world, process);
    }
}

#[test]
fn a_dead_waiter_at_the_head_delays_by_the_claim_window_at_most() {
    // It has its turn for the claim window, from the release on; whole milliseconds, and one more.
    for dead_for in [nanos(1), millis(1), millis(700), millis(2_000)] {
        let delay = delay_by_a_dead_waiter(dead_for);
        assert!(delay >= WINDOW && delay <= WINDOW + millis(1), "{dead_for:?}: {delay:?}");
    }
}

/// One that was not heard for a claim window is passed over at once.
#[test]
fn a_waiter_that_died_long_ago_delays_nobody() {
    for dead_for in [millis(3_001), millis(4_900)] {
        assert_eq!(delay_by_a_dead_waiter(dead_for), Duration::ZERO, "{dead_for:?}");
    }
}
