use leasehold::{
    Guard,
    error::{AcquireError, WaitTimeout},
};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

async fn timed_out(waiting: Waiting) -> WaitTimeout {
    match waiting.outcome().await.map(|guard: Guard| guard.id()) {
        Err(AcquireError::Timeout(timeout)) => *timeout,
        other => panic!("{other:?}"),
    }
}

/// How long, where in the line, and who holds the lock.
#[tokio::test]
async fn a_timeout_says_how_long_where_and_who() {
    let world = World::new();
    let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
    warm_up(&world, &one).await;
    let guard = lock(&one).acquire().await.unwrap();
    world.pass(secs(1)).await;
    let _second = Waiting::queued(&world, &two).await;
    let mut tasks = Vec::new();
    for n in 0..4_u64 {
        tasks.push(Waiting::on(lock(&three).acquire().wait(millis(4_000 - n))));
        world.settle().await;
    }
    let local = Waiting::on(lock(&one).acquire().wait(secs(2)));
    world.pass(secs(2)).await;

    let timeout = timed_out(local).await;
    assert_eq!(timeout.waited, secs(2));
    let position = timeout.position.unwrap();
    assert_eq!((position.runtimes, position.tasks), (None, 0));
    assert!(timeout.holder.as_ref().unwrap().this_runtime);
    assert!(timeout.to_string().contains("this very runtime"), "{timeout}");

    world.pass(secs(2)).await;
    // The last to come is the first to go.
    for (n, task) in tasks.into_iter().enumerate().rev() {
        let timeout = timed_out(task).await;
        assert_eq!(timeout.waited, millis(4_000 - n as u64));
        let position = timeout.position.unwrap();
        assert_eq!((position.runtimes, position.tasks), (Some(1), n));
        let text = timeout.to_string();
        let tasks = if n == 1 { "1 local task".into() } else { format!("{n} local tasks") };
        let line = format!("(1 other runtime and {tasks} ahead)");
        assert!(text.contains(&line) && text.contains("not free within"), "{text}");
        let holder = timeout.holder.unwrap();
        assert_eq!((holder.lease, holder.fence), (guard.id(), guard.fence()));
        assert!(!holder.this_runtime && holder.held_for >= secs(4));
    }
    world.settle().await;
    assert_eq!(world.holder(World::NAME).await.unwrap().waiters.len(), 1);
}

/// A try has no place in the line.
#[tokio::test]
async fn a_try_and_a_wait_of_zero_leave_no_place() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.runtime(2));
    let _guard = lock(&one).acquire().await.unwrap();
    assert!(lock(&two).try_acquire().await.unwrap().is_none());
    let timeout = timed_out(Waiting::on(lock(&two).acquire().wait(millis(0)))).await;
    assert_eq!((timeout.waited, timeout.position), (millis(0), None));
    assert!(timeout.holder.is_some());
    assert_eq!(world.holder(World::NAME).await.unwrap().waiters.len(), 0);
    assert_eq!(two.footprint().names, 0);
}

/// What a runtime keeps in memory follows who waits, and shrinks to nothing.
#[tokio::test]
async fn the_line_is_forgotten_when_it_is_empty() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.runtime(2));
    let guard = lock(&one).acquire().await.unwrap();
    let tasks: Vec<_> = (0..100).map(|_| Waiting::on(lock(&two).acquire().wait(secs(5)))).collect();
    world.settle().await;
    assert_eq!((two.footprint().names, two.footprint().waiting), (1, 100));
    world.pass(secs(5)).await;
    for task in tasks {
        timed_out(task).await;
    }
    world.settle().await;
    let left = two.footprint();
    assert_eq!((left.names, left.waiting, left.watched, left.pending), (0, 0, 0, 0));
    guard.release().await.unwrap();
    world.settle().await;
    assert_eq!(one.footprint().names, 0);
}
