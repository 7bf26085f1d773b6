use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use super::virtual_support::{Waiting, World, lock};

/// How often a task comes back.
const ROUNDS: usize = 50;

/// A loop whose guards are dropped waits for nothing but the server.
#[tokio::test]
async fn whoever_drops_a_guard_and_comes_back_waits_for_no_heartbeat() {
    let world = World::new();
    let one = world.runtime(1);
    for _ in 0..ROUNDS {
        drop(Waiting::on(lock(&one).acquire()).taken(&world).await);
    }
}

/// A task that comes while the lock is on its way back gets it as soon as it is back.
#[tokio::test]
async fn whoever_comes_while_the_lock_is_given_back_waits_for_no_heartbeat() {
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
