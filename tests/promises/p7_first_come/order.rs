use leasehold::LockRuntime;
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::{CommandKind, faulty::CommandFacts};

use crate::support::{Waiting, World, lock, millis, poll_once, warm_up};

/// Runtimes with a line to the store each, and the first of them holding the lock.
fn runtimes(world: &World, n: u64) -> Vec<LockRuntime> {
    (1..=n).map(|seed| world.another_line().runtime(seed)).collect()
}

#[tokio::test]
async fn runtimes_are_served_in_the_order_in_which_they_queued() {
    let world = World::new();
    let runtimes = runtimes(&world, 8);
    let mut guard = lock(&runtimes[0]).acquire().await.unwrap();
    let mut line = Vec::new();
    // Not in the order in which they were made.
    for n in [5, 2, 7, 1, 6, 3, 4] {
        line.push((n, Waiting::queued(&world, &runtimes[n]).await));
    }
    world.pass(millis(10_000)).await;
    for (n, waiting) in line {
        world.pass(millis(5)).await;
        let before = guard.fence();
        guard.release().await.unwrap();
        guard = waiting.taken(&world).await;
        assert_eq!(guard.id().runtime(), runtimes[n].id());
        assert!(guard.fence() > before);
    }
}

/// A new one queues behind all who wait.
#[tokio::test]
async fn runtimes_take_turns() {
    let world = World::new();
    let runtimes = runtimes(&world, 3);
    let mut guard = lock(&runtimes[0]).acquire().await.unwrap();
    let mut line: std::collections::VecDeque<_> = [
        (1, Waiting::queued(&world, &runtimes[1]).await),
        (2, Waiting::queued(&world, &runtimes[2]).await),
    ]
    .into();
    let mut present = 0;
    for _ in 0..30 {
        line.push_back((present, Waiting::on(lock(&runtimes[present]).acquire())));
        world.settle().await;
        guard.release().await.unwrap();
        let (next, waiting) = line.pop_front().unwrap();
        guard = waiting.taken(&world).await;
        assert_eq!(guard.id().runtime(), runtimes[next].id());
        present = next;
    }
}

/// One command per change of runtime, which tells the next one too: nobody has to ask.
#[tokio::test]
async fn a_hand_over_between_runtimes_is_one_command() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.runtime(2));
    let mut guard = lock(&one).acquire().await.unwrap();
    for (next, n) in [&two, &one].into_iter().cycle().zip(0..10) {
        let waiting = Waiting::queued(&world, next).await;
        world.store.clear_log();
        let pushed = world.store.pushed();
        guard.release().await.unwrap();
        guard = waiting.taken(&world).await;
        let kinds: Vec<_> = world.store.log().iter().map(|done| done.command.kind()).collect();
        assert_eq!(kinds, [CommandKind::Release], "hand-over {n}");
        assert_eq!(world.store.pushed() - pushed, 1, "one waiter is woken per release");
    }
}

#[tokio::test]
async fn tasks_of_a_runtime_are_served_in_the_order_in_which_they_came() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    warm_up(&world, &one).await;
    let guard = lock(&two).acquire().await.unwrap();
    world.pass(millis(1)).await;
    let tasks: Vec<_> = (0..15).map(|_| Waiting::on(lock(&one).acquire())).collect();
    world.settle().await;
    guard.release().await.unwrap();
    world.store.clear_log();
    let mut before = None;
    for task in tasks {
        let guard = task.taken(&world).await;
        assert!(before.is_none_or(|before| guard.fence() > before));
        before = Some(guard.fence());
        guard.release().await.unwrap();
    }
    world.settle().await;
    assert_eq!(world.store.log().len(), 1, "the hand-overs were in memory, and then the release");
}

/// Polls tasks in the wrong order, while the first is offered the lock; whether one gets it that
/// should not.
async fn the_second_looks_first(rules: Rules) -> bool {
    let world = World::new();
    let locks = world.start(world.builder(1).seam(rules));
    warm_up(&world, &locks).await;
    let (holds, one, two) = (lock(&locks), lock(&locks), lock(&locks));
    let guard = holds.acquire().await.unwrap();
    let (mut one, mut two) = (Box::pin(one.acquire()), Box::pin(two.acquire()));
    if poll_once(one.as_mut()).is_ready() || poll_once(two.as_mut()).is_ready() {
        return true;
    }
    guard.release().await.unwrap();
    poll_once(two.as_mut()).is_ready() || poll_once(one.as_mut()).is_pending()
}

#[tokio::test]
async fn a_task_that_looks_too_early_waits_for_its_turn() {
    assert!(!the_second_looks_first(Rules::default()).await);
}

/// The control: where everybody takes what is there, the order is that of the scheduler.
#[tokio::test]
async fn control_everybody_takes_what_is_there() {
    let rules = Rules { may_take: |_, _| true, ..Rules::default() };
    assert!(the_second_looks_first(rules).await);
}
