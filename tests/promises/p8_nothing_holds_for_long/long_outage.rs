//! An outage that is longer than the ttl: the server goes on, and executes what was given up.

use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{Waiting, World, lock, secs};

/// A world whose server stands still from now on, with an acquire in its buffer.
fn stand_still(world: &World) {
    world.store.inject(Rule::new(Fault::Delay(Gate::new())).on(CommandKind::Acquire));
    world.store.inject(Rule::new(Fault::LoseRequest).always());
}

#[tokio::test]
async fn a_lock_is_free_soon_after_an_outage_that_outlasts_the_ttl() {
    for outage in [secs(10), secs(35), secs(600), secs(3_000)] {
        let world = World::new();
        let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
        stand_still(&world);
        let waiting = Waiting::on(lock(&locks).acquire());
        world.pass(outage).await;
        assert!(waiting.outcome().await.is_err());
        assert_eq!(locks.footprint().pending, 1, "{outage:?}: it is still to be told");
        world.store.heal();
        world.store.deliver_late().await;
        assert!(world.holder(World::NAME).await.is_some(), "the control: nobody has this lease");
        let theirs = Waiting::on(lock(&others).acquire());
        let (guard, _) = theirs.taken_within(&world, secs(3)).await;
        world.settle().await;
        assert_eq!(locks.footprint().pending, 0, "{outage:?}");
        guard.release().await.unwrap();
    }
}

/// While nothing is answered, one withdrawal at a time is sent, for whatever lock; and many locks
/// are free at once when the server is back.
#[tokio::test]
async fn many_withdrawals_cost_one_command_at_a_time_until_the_server_is_back() {
    const NAMES: usize = 300;
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    let names: Vec<_> = (0..NAMES).map(|n| locks.lock(format!("many/{n}")).unwrap()).collect();
    let waiting: Vec<_> = names.iter().map(|name| Waiting::on(name.acquire())).collect();
    world.pass(secs(60)).await;
    drop(waiting);
    assert_eq!(locks.footprint().pending, NAMES);
    world.store.clear_log();
    world.pass(secs(60)).await;
    let sent = world.store.sent(CommandKind::Withdraw);
    assert!((20..=40).contains(&sent), "one after the other, each with 2 s: {sent}");
    world.store.heal();
    world.pass(secs(4)).await;
    assert_eq!((locks.footprint().pending, locks.footprint().names), (0, 0));
    assert!(world.store.executed(CommandKind::Withdraw) >= NAMES);
}

/// It is given up after an hour, and ends with its runtime.
#[tokio::test]
async fn a_withdrawal_without_an_answer_ends_some_time() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    let waiting = Waiting::on(lock(&locks).acquire());
    world.pass(secs(10)).await;
    assert!(waiting.outcome().await.is_err());
    for _ in 0..70 {
        assert_eq!(locks.footprint().pending, 1);
        world.pass(secs(50)).await;
    }
    world.pass(secs(200)).await;
    assert_eq!(locks.footprint().pending, 0);
    // The other way to end.
    let waiting = Waiting::on(lock(&locks).acquire());
    world.pass(secs(60)).await;
    assert!(waiting.outcome().await.is_err());
    drop(locks);
    world.pass(secs(10)).await;
    world.store.clear_log();
    world.pass(secs(60)).await;
    assert_eq!(world.store.sent(CommandKind::Withdraw), 0, "its runtime is gone");
}
