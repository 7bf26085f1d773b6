use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::AtomicBool},
};

use leasehold::AcquisitionId;
use leasehold_testkit::{CommandKind, Fault, FaultyStore, Gate, Rule, faulty::CommandFacts};

use crate::support::{BrokenClock, Waiting, World, lock, millis, poll_once, secs, warm_up};

/// P8: a release that is answered has freed the lock, whether its future hears of it or not.
#[tokio::test]
async fn a_release_that_nobody_polls_again_does_not_keep_the_lock() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(10)));
    let guard = lock(&locks).acquire().await.unwrap();
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Release));
    let mut release = Box::pin(guard.release());
    assert!(poll_once(release.as_mut()).is_pending());
    gate.open();
    let waiting = Waiting::queued(&world, &locks).await;
    let (next, _) = waiting.taken_within(&world, secs(4)).await;
    let record = world.holder(World::NAME).await.expect("it is the next one's");
    assert_eq!(record.fence, next.fence());
    drop(release);
}

/// A panic in the release of a dropped guard costs the ttl of that lease at most.
#[tokio::test]
async fn a_release_that_panics_does_not_keep_the_lock_for_longer_than_the_ttl() {
    let world = World::new();
    let store = panicking_on_release(&world);
    let locks = world.builder(1).ttl(secs(10)).on_store(Arc::new(store.clone())).unwrap();
    drop(lock(&locks).acquire().await.unwrap());
    world.settle().await;
    assert_eq!(store.sent(CommandKind::Release), 1, "the release was due");
    assert_eq!(world.store.sent(CommandKind::Release), 0, "it came to nothing");
    let waiting = Waiting::on(lock(&locks).acquire().wait_forever());
    let (guard, _) = waiting.taken_within(&world, secs(10)).await;
    guard.release().await.expect("the store panics once");
    world.settle().await;
    assert_eq!(locks.footprint().pending, 0, "nothing is left to be released");
}

/// A store whose first release is lost, and panics on the broken clock that it waits by.
fn panicking_on_release(world: &World) -> FaultyStore {
    let broken = Arc::new(AtomicBool::new(true));
    let clock = BrokenClock { manual: world.clock().clone(), broken };
    let store = FaultyStore::new(Arc::new(world.store.clone()), Arc::new(clock));
    store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release));
    store
}

/// An end of a turn that was given up may have been executed, and have queued the next id.
#[tokio::test]
async fn an_unanswered_end_of_a_turn_is_withdrawn_with_its_next_place() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(2)));
    warm_up(&world, &locks).await;
    let guard = lock(&locks).acquire().await.unwrap();
    let ended = guard.id();
    let waiting = Waiting::queued(&world, &locks).await;
    // The turn began alone and has had its time: it ends, and asks for a place.
    world.pass(millis(15)).await;
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).always());
    guard.release().await.unwrap();
    world.pass(millis(500)).await;
    waiting.cancel().await;
    world.store.clear_log();
    world.pass(secs(3)).await;
    let withdrawn = withdrawn(&world);
    assert!(withdrawn.contains(&ended), "{ended} is not among {withdrawn:?}");
    assert_eq!(withdrawn.len(), 2, "{ended} and its next place: {withdrawn:?}");
}

/// The acquisitions that were taken back.
fn withdrawn(world: &World) -> BTreeSet<AcquisitionId> {
    let log = world.store.log();
    let withdrawals = log.iter().filter(|done| done.command.kind() == CommandKind::Withdraw);
    withdrawals.flat_map(|done| done.command.ids()).collect()
}
