use leasehold::{LockRuntime, error::AcquireError};
use leasehold_testkit::{CommandKind, Fault, Rule};

use super::{outage, silences, unavailable};
use crate::support::{Waiting, World, lock, millis, secs};

/// An outage of six seconds, which has ended a wait.
async fn known_outage(world: &World, locks: &LockRuntime, fault: Fault) {
    world.store.inject(Rule::new(fault).always());
    let first = Waiting::on(locks.lock("first").unwrap().acquire());
    world.pass(secs(6)).await;
    outage(first).await;
}

#[tokio::test]
async fn whoever_comes_in_a_known_outage_is_told_soon() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        known_outage(&world, &locks, fault.clone()).await;
        for _ in 0..3 {
            let waiting = Waiting::on(lock(&locks).acquire());
            let forever = Waiting::on(lock(&locks).acquire().wait_forever());
            let tried = lock(&locks);
            let trying = tokio::spawn(async move { tried.try_acquire().await });
            let once = locks.once("form").unwrap();
            let running = tokio::spawn(async move { once.begin().await.map(drop) });
            let all = locks.all(["a", "b"]).unwrap();
            let both = tokio::spawn(async move { all.acquire().await.map(drop) });
            world.pass(millis(99)).await;
            assert!(!waiting.is_over(), "{fault:?}: the server may just be back");
            world.pass(millis(1)).await;
            let told = outage(waiting).await;
            assert!(told.silent_for >= secs(6) && told.waited == millis(100), "{told}");
            outage(forever).await;
            assert!(trying.is_finished() && running.is_finished() && both.is_finished());
            unavailable(trying.await.unwrap().map(|guard| guard.expect("no answer")));
            for ended in [running.await.unwrap(), both.await.unwrap()] {
                assert!(matches!(ended, Err(AcquireError::Unavailable(_))), "{ended:?}");
            }
        }
    }
}

/// The patience of a call that comes in the middle of it ends with that of all others.
#[tokio::test]
async fn the_patience_counts_from_the_beginning_of_the_outage() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        world.store.inject(Rule::new(fault.clone()).always());
        let first = Waiting::on(locks.lock("first").unwrap().acquire());
        world.pass(secs(3)).await;
        let second = Waiting::on(lock(&locks).acquire());
        let patient = Waiting::on(lock(&locks).acquire().outage_patience(secs(8)));
        world.pass(millis(1_999)).await;
        assert!(!first.is_over() && !second.is_over(), "{fault:?}");
        world.pass(millis(1)).await;
        assert!(outage(first).await.waited == secs(5) && outage(second).await.waited == secs(2));
        world.pass(millis(2_999)).await;
        assert!(!patient.is_over(), "{fault:?}");
        world.pass(millis(1)).await;
        outage(patient).await;
    }
}

#[tokio::test]
async fn the_first_acquire_after_a_known_outage_gets_its_lease() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        known_outage(&world, &locks, fault.clone()).await;
        for _ in 0..50 {
            outage_of(&world, &locks).await;
        }
        world.store.heal();
        let (guard, waited) =
            Waiting::on(lock(&locks).acquire()).taken_within(&world, secs(1)).await;
        assert!(waited <= millis(10), "{fault:?}: after {waited:?}");
        guard.release().await.unwrap();
        assert!(lock(&locks).try_acquire().await.unwrap().is_some(), "{fault:?}");
    }
}

async fn outage_of(world: &World, locks: &LockRuntime) {
    let waiting = Waiting::on(lock(locks).acquire());
    world.pass(millis(100)).await;
    outage(waiting).await;
}

/// A thousand requests ask once, and leave nothing behind that has to be withdrawn.
#[tokio::test]
async fn those_who_come_in_a_known_outage_share_one_probe() {
    let world = World::new();
    let locks = world.runtime(1);
    known_outage(&world, &locks, Fault::LoseRequest).await;
    world.store.clear_log();
    let pending = locks.footprint().pending;
    let waiting: Vec<_> = (0..1_000)
        .map(|number| Waiting::on(locks.lock(format!("many/{number}")).unwrap().acquire()))
        .collect();
    world.pass(millis(100)).await;
    for waiting in waiting {
        outage(waiting).await;
    }
    assert_eq!(world.store.sent(CommandKind::Acquire), 0);
    assert!(world.store.sent(CommandKind::Inspect) <= 2, "{:?}", world.store);
    assert_eq!(locks.footprint().pending, pending);
}

/// What a task of this process holds goes on without the server: by a re-entry, and in its line.
#[tokio::test]
async fn what_this_process_holds_is_waited_for_in_a_known_outage() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        let owner = locks.owner();
        let held = lock(&locks).acquire().ttl(secs(60)).owner(&owner).await.unwrap();
        known_outage(&world, &locks, fault.clone()).await;
        let again = Waiting::on(lock(&locks).acquire().owner(&owner));
        let waiting = Waiting::on(lock(&locks).acquire());
        world.pass(secs(6)).await;
        assert!(!waiting.is_over() && held.is_held(), "{fault:?}");
        assert!(again.outcome().await.unwrap().is_held(), "{fault:?}");
    }
}

#[tokio::test]
async fn who_waited_behind_an_own_lease_is_told_soon_after_its_end() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        let held = lock(&locks).acquire().ttl(secs(60)).await.unwrap();
        known_outage(&world, &locks, fault.clone()).await;
        let waiting: Vec<_> = (0..10).map(|_| Waiting::on(lock(&locks).acquire())).collect();
        world.pass(secs(6)).await;
        drop(held);
        world.pass(millis(100)).await;
        for waiting in waiting {
            outage(waiting).await;
        }
    }
}

/// A lock that is kept idle is there without the server.
#[tokio::test]
async fn an_idle_lock_is_taken_in_a_known_outage() {
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(60)).keep_idle(secs(40)));
    for _ in 0..3 {
        lock(&locks).acquire().await.unwrap().release().await.unwrap();
        world.pass(millis(20)).await;
    }
    known_outage(&world, &locks, Fault::LoseRequest).await;
    drop(Waiting::on(lock(&locks).acquire()).taken(&world).await);
}
