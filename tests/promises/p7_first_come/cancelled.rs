use std::task::Poll;

use leasehold_testkit::{
    CommandKind,
    faulty::{PushFault, PushRule},
};

use crate::support::{Waiting, World, lock, millis, poll_once, secs, warm_up};

const NAME: &str = World::NAME;

/// Who waits, as the store has it.
async fn line(world: &World) -> Vec<leasehold::RuntimeId> {
    let waiters = world.holder(NAME).await.unwrap().waiters;
    waiters.iter().map(|waiter| waiter.id.runtime()).collect()
}

#[tokio::test]
async fn a_cancelled_waiter_leaves_its_place_at_once() {
    let world = World::new();
    let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
    let guard = lock(&one).acquire().await.unwrap();
    let gone = Waiting::queued(&world, &two).await;
    let stays = Waiting::queued(&world, &three).await;
    assert_eq!(line(&world).await, [two.id(), three.id()]);
    gone.cancel().await;
    world.settle().await;
    assert_eq!(line(&world).await, [three.id()]);
    guard.release().await.unwrap();
    stays.taken(&world).await.release().await.unwrap();
    assert!(world.holder(NAME).await.is_none());
    assert_eq!(two.footprint().names + two.footprint().waiting + two.footprint().pending, 0);
}

/// While other tasks of its runtime wait, the place stays, and where it was.
#[tokio::test]
async fn a_cancelled_task_does_not_cost_the_others_their_place() {
    for gone in 0..3 {
        let world = World::new();
        let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
        warm_up(&world, &one).await;
        let guard = lock(&one).acquire().await.unwrap();
        let mut tasks = Vec::new();
        for _ in 0..3 {
            tasks.push(Waiting::queued(&world, &two).await);
        }
        let behind = Waiting::queued(&world, &three).await;
        let place = world.holder(NAME).await.unwrap().waiters[0].id;
        tasks.remove(gone).cancel().await;
        world.pass(secs(10)).await;
        assert_eq!(line(&world).await, [two.id(), three.id()]);
        assert_eq!(world.holder(NAME).await.unwrap().waiters[0].id, place);
        assert_eq!(world.store.sent(CommandKind::Withdraw), 0);
        guard.release().await.unwrap();
        for task in tasks {
            task.taken(&world).await.release().await.unwrap();
        }
        behind.taken(&world).await.release().await.unwrap();
    }
}

/// The first asks for all; cancelled before it is answered, it leaves that to the next.
#[tokio::test]
async fn the_first_task_may_go_before_it_is_answered() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    let guard = lock(&two).acquire().await.unwrap();
    let mut first = Box::pin(lock(&one).acquire());
    assert!(poll_once(first.as_mut()).is_pending());
    let second = Waiting::queued(&world, &one).await;
    drop(first);
    world.settle().await;
    assert_eq!(line(&world).await, [one.id()]);
    guard.release().await.unwrap();
    second.taken(&world).await.release().await.unwrap();
}

/// A task of the runtime is offered the lock as it goes: the next one has it at once.
#[tokio::test]
async fn an_offer_that_crossed_a_cancellation_goes_to_the_next_task() {
    let world = World::new();
    let locks = world.runtime(1);
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().await.unwrap();
    let fence = guard.fence();
    let mut gone = Box::pin(lock(&locks).acquire());
    assert!(poll_once(gone.as_mut()).is_pending());
    let next = Waiting::queued(&world, &locks).await;
    guard.release().await.unwrap();
    world.store.clear_log();
    drop(gone);
    let guard = next.taken(&world).await;
    // Its token is spent; the turn goes on without a command.
    assert_eq!(guard.fence().get(), fence.get() + 2);
    assert_eq!(world.store.log().len(), 0);
}

/// A runtime was granted the lock as its last task goes: the next runtime has it at once.
#[tokio::test]
async fn a_grant_that_crossed_a_cancellation_goes_to_the_next_runtime() {
    let world = World::new();
    let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
    let guard = lock(&one).acquire().await.unwrap();
    let mut gone = Box::pin(lock(&two).acquire());
    while world.holder(NAME).await.unwrap().waiters.is_empty() {
        assert!(poll_once(gone.as_mut()).is_pending());
        world.settle().await;
    }
    assert!(poll_once(gone.as_mut()).is_pending());
    let next = Waiting::queued(&world, &three).await;
    guard.release().await.unwrap();
    assert_eq!(world.holder(NAME).await.unwrap().id.runtime(), two.id());
    drop(gone);
    next.taken(&world).await.release().await.unwrap();
    assert!(world.holder(NAME).await.is_none());
}

/// The message of the grant is still on its way when the place is withdrawn.
#[tokio::test]
async fn a_withdrawal_ends_the_grant_that_crossed_it() {
    let world = World::new();
    let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
    let guard = lock(&one).acquire().await.unwrap();
    let gone = Waiting::queued(&world, &two).await;
    let next = Waiting::queued(&world, &three).await;
    world.store.inject_push(PushRule::new(PushFault::Delay).to(two.id()));
    guard.release().await.unwrap();
    gone.cancel().await;
    let guard = next.taken(&world).await;
    // It arrives at last, and finds nobody.
    assert_eq!(world.store.deliver_pushes(), 1);
    world.pass(secs(20)).await;
    assert!(guard.is_held());
    assert_eq!(world.holder(NAME).await.unwrap().id, guard.id());
    assert_eq!(two.footprint().names, 0);
}

/// A task that comes back after a cancellation queues anew, at the end.
#[tokio::test]
async fn one_that_comes_back_queues_anew() {
    let world = World::new();
    let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
    let guard = lock(&one).acquire().await.unwrap();
    let gone = Waiting::queued(&world, &two).await;
    let stays = Waiting::queued(&world, &three).await;
    gone.cancel().await;
    let again = Waiting::queued(&world, &two).await;
    world.pass(millis(1)).await;
    assert_eq!(line(&world).await, [three.id(), two.id()]);
    guard.release().await.unwrap();
    stays.taken(&world).await.release().await.unwrap();
    again.taken(&world).await.release().await.unwrap();
}

/// Tasks of a crowd are cancelled wherever they stand, while the lock is handed around.
#[tokio::test]
async fn cancellations_in_a_crowd_lose_nothing() {
    let world = World::new();
    let runtimes = [1, 2, 3].map(|seed| world.runtime(seed));
    warm_up(&world, &runtimes[0]).await;
    for round in 0..12 {
        let mut guard = Some(lock(&runtimes[0]).acquire().await.unwrap());
        let ask = |n: usize| Box::pin(lock(&runtimes[n % 3]).acquire());
        let mut tasks: Vec<_> = (0..12).map(ask).collect();
        for turn in 0..30 {
            let polled = tasks.iter_mut().map(|task| poll_once(task.as_mut()));
            let mut ready: Vec<_> = polled.enumerate().filter(|(_, got)| got.is_ready()).collect();
            assert!(ready.len() + usize::from(guard.is_some()) <= 1, "round {round}: one believer");
            if let Some((n, Poll::Ready(got))) = ready.pop() {
                drop(tasks.remove(n));
                guard = Some(got.unwrap());
            }
            if turn % 3 == round % 3 && !tasks.is_empty() {
                drop(tasks.remove((turn * 7 + round) % tasks.len()));
            }
            if let Some(guard) = guard.take() {
                guard.release().await.unwrap();
            }
            world.settle().await;
        }
        drop(tasks);
        world.settle().await;
        assert!(world.holder(NAME).await.is_none(), "round {round}");
    }
}
