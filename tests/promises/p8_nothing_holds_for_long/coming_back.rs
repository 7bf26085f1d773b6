use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{Waiting, World, lock, secs};

/// How often a task comes back.
const ROUNDS: usize = 50;

/// A loop whose guards are dropped waits for nothing but the server.
#[tokio::test]
async fn a_task_that_drops_a_guard_and_comes_back_waits_for_no_heartbeat() {
    let world = World::new();
    let one = world.runtime(1);
    for _ in 0..ROUNDS {
        drop(Waiting::on(lock(&one).acquire()).taken(&world).await);
    }
}

/// A task that comes while the lock is on its way back gets it as soon as it is back.
#[tokio::test]
async fn a_task_that_comes_while_the_lock_is_given_back_waits_for_no_heartbeat() {
    let world = World::new();
    let one = world.runtime(1);
    for _ in 0..ROUNDS {
        let guard = Waiting::on(lock(&one).acquire()).taken(&world).await;
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Release));
        let releasing = tokio::spawn(guard.release());
        let late = Waiting::queued(&world, &one).await;
        gate.open();
        let guard = late.taken(&world).await;
        assert!(releasing.await.unwrap().is_ok());
        drop(guard);
        world.settle().await;
    }
}

/// Releases that are stuck delay that of another dropped guard by at most the claim window.
#[tokio::test]
async fn a_dropped_guard_does_not_wait_for_the_releases_of_others_for_long() {
    let world = World::new();
    let [one, two] = [1, 2].map(|seed| world.runtime(seed));
    let mut others = Vec::new();
    for n in 0..100 {
        others.push(one.lock(format!("other/{n}")).unwrap().acquire().await.unwrap());
    }
    let guard = lock(&one).acquire().await.unwrap();
    let waits = Waiting::queued(&world, &two).await;
    for other in others {
        let stuck = Rule::new(Fault::LoseRequest).on(CommandKind::Release).lock(other.name());
        world.store.inject(stuck.always());
        drop(other);
    }
    world.settle().await;
    drop(guard);
    let (guard, delay) = waits.taken_within(&world, secs(4)).await;
    assert!(guard.is_held() && delay <= secs(3), "{delay:?}");
}
