use std::time::Duration;

use leasehold::LockRuntime;
use leasehold_testkit::{
    CommandKind, Fault, Rule,
    faulty::{PushFault, PushRule},
};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

/// A quarter of the claim window.
const HEARTBEAT: Duration = Duration::from_millis(750);

/// The waits of a chain of hand-overs between runtimes, each beginning with a release.
async fn waits_of_a_chain(world: &World, runtimes: &[LockRuntime], links: usize) -> Vec<Duration> {
    warm_up(world, &runtimes[0]).await;
    let mut guard = lock(&runtimes[0]).acquire().await.unwrap();
    let mut waits = Vec::new();
    for link in 1..=links {
        let next = Waiting::queued(world, &runtimes[link % runtimes.len()]).await;
        // At another point between two heartbeats each time.
        world.pass(millis(link as u64 * 173 % 2_000)).await;
        guard.release().await.unwrap();
        let (taken, waited) = next.taken_within(world, secs(20)).await;
        waits.push(waited);
        guard = taken;
    }
    waits
}

#[tokio::test]
async fn a_lost_wake_up_delays_by_one_heartbeat_at_most() {
    for window in [secs(3), millis(400)] {
        let world = World::new();
        let build = |seed| world.start(world.builder(seed).claim_window(window));
        let runtimes = [1, 2, 3].map(build);
        world.store.inject_push(PushRule::new(PushFault::Lose).always());
        let waits = waits_of_a_chain(&world, &runtimes, 40).await;
        let longest = waits.iter().max().unwrap();
        // Time is looked at every half millisecond.
        assert!(*longest <= window / 4 + millis(1), "{longest:?}");
        assert!(*longest > window / 8, "{longest:?}: the messages came through");
        assert_eq!(world.store.pushed(), 40);
    }
}

/// The control: with its messages, nobody waits at all.
#[tokio::test]
async fn control_with_messages_a_hand_over_takes_no_time() {
    let world = World::new();
    let runtimes = [1, 2, 3].map(|seed| world.runtime(seed));
    let waits = waits_of_a_chain(&world, &runtimes, 40).await;
    assert_eq!(waits, [Duration::ZERO; 40]);
}

/// A heartbeat is lost too, and the next one: each costs its own time, and nobody is stuck.
#[tokio::test]
async fn lost_heartbeats_keep_the_place() {
    let world = World::new();
    let [one, two, three] = [1, 2, 3].map(|seed| world.runtime(seed));
    let guard = lock(&one).acquire().await.unwrap();
    let first = Waiting::queued(&world, &two).await;
    let second = Waiting::queued(&world, &three).await;
    let lost = Rule::new(Fault::Fail(crate::support::definite()));
    world.store.inject(lost.on(CommandKind::Heartbeat).times(4));
    world.pass(secs(20)).await;
    let waiters = world.holder(World::NAME).await.unwrap().waiters;
    assert_eq!(
        waiters.iter().map(|one| one.id.runtime()).collect::<Vec<_>>(),
        [two.id(), three.id()]
    );
    guard.release().await.unwrap();
    first.taken(&world).await.release().await.unwrap();
    second.taken(&world).await.release().await.unwrap();
}

/// After a gap, every waiter asks again, spread over 50 ms.
#[tokio::test]
async fn after_a_gap_every_waiter_asks_again() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.runtime(2));
    let guard = lock(&one).acquire().await.unwrap();
    let waiting = Waiting::queued(&world, &two).await;
    world.pass(millis(400)).await;
    world.store.inject_push(PushRule::new(PushFault::Lose));
    guard.release().await.unwrap();
    world.pass(millis(10)).await;
    assert!(!waiting.is_over());
    world.store.reconnect();
    let (_guard, waited) = waiting.taken_within(&world, HEARTBEAT).await;
    assert!(waited <= millis(51), "{waited:?}");
}

/// Waiting is quiet: a heartbeat for each quarter of the claim window, and none without waiters.
#[tokio::test]
async fn a_waiter_costs_a_heartbeat_for_each_quarter_of_the_window() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    let _guard = lock(&two).acquire().await.unwrap();
    let tasks: Vec<_> = (0..50).map(|_| Waiting::on(lock(&one).acquire().wait_forever())).collect();
    world.pass(secs(60)).await;
    let sent = world.store.sent(CommandKind::Heartbeat);
    assert!((80..=108).contains(&sent), "{sent} heartbeats within a minute");
    for task in tasks {
        task.cancel().await;
    }
    world.settle().await;
    world.store.clear_log();
    world.pass(secs(60)).await;
    assert_eq!(world.store.log().len(), 0);
}

/// Many names share the commands.
#[tokio::test]
async fn heartbeats_of_many_names_travel_together() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    let mut kept = Vec::new();
    for n in 0..1_000 {
        kept.push(two.lock(format!("n{n}")).unwrap().acquire().await.unwrap());
    }
    let waits = |n| Waiting::on(one.lock(format!("n{n}")).unwrap().acquire().wait_forever());
    let tasks: Vec<_> = (0..1_000).map(waits).collect();
    world.pass(secs(2)).await;
    world.store.clear_log();
    world.pass(secs(30)).await;
    let sent = world.store.sent(CommandKind::Heartbeat);
    // Each name is due every 560 to 750 ms; those that are due within 200 ms travel together.
    assert!(sent <= 30 * 1_000 / 180, "{sent} commands within 30 s");
    drop((tasks, kept));
}
