//! A try answers within one command timeout, and waits only for a release of its own process.

use std::time::Duration;

use leasehold::error::AcquireError;
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{Waiting, World, lock, millis, secs};

const TIMEOUT: Duration = secs(2);

#[tokio::test]
async fn a_try_ends_within_a_command_timeout() {
    for (ttl, timeout) in [(secs(10), TIMEOUT), (secs(1), millis(500))] {
        // The last breaks the promise of a store to reply by the deadline.
        let mute = Fault::Hang { executed: true };
        for fault in [Fault::LoseRequest, Fault::LoseReply, mute] {
            let world = World::new();
            let locks = world.runtime(1);
            world.store.inject(Rule::new(fault).always());
            let waiting = Waiting::on(lock(&locks).acquire().ttl(ttl).wait(Duration::ZERO));
            world.pass(timeout).await;
            assert!(waiting.is_over());
            let outcome = waiting.outcome().await;
            assert!(matches!(outcome, Err(AcquireError::Unavailable(_))), "{outcome:?}");
        }
    }
}

/// The guard is dropped, and its release is on its way: a try waits for it, and gets the lock.
#[tokio::test]
async fn a_try_after_a_drop_gets_the_lock() {
    let world = World::new();
    let locks = world.runtime(1);
    for _ in 0..5 {
        let guard = lock(&locks).try_acquire().await.unwrap();
        drop(guard.expect("nobody else wants it"));
    }
    drop(lock(&locks).acquire().await.unwrap());
    assert!(lock(&locks).try_acquire().await.unwrap().is_some());
}

/// Also after a release whose future was dropped, and of several tries one gets it.
#[tokio::test]
async fn of_several_tries_after_a_drop_one_gets_the_lock() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Release));
    drop(guard);
    let tries: Vec<_> =
        (0..5).map(|_| Waiting::on(lock(&locks).acquire().wait(Duration::ZERO))).collect();
    world.pass(millis(30)).await;
    assert!(tries.iter().all(|one| !one.is_over()), "the release is on its way");
    gate.open();
    world.settle().await;
    assert!(tries.iter().all(Waiting::is_over));
    let mut got = Vec::new();
    for one in tries {
        got.extend(one.outcome().await.ok());
    }
    assert_eq!(got.len(), 1);
}

/// The lock goes on to another process: that is an answer, too.
#[tokio::test]
async fn a_try_after_a_drop_passes_nobody() {
    let world = World::new();
    let (one, two) = (world.runtime(1), world.another_line().runtime(2));
    let guard = lock(&one).acquire().await.unwrap();
    let theirs = Waiting::queued(&world, &two).await;
    drop(guard);
    assert!(lock(&one).try_acquire().await.unwrap().is_none());
    assert!(theirs.taken(&world).await.is_held());
}

/// Neither the release nor anything else is answered: one command timeout is the bound.
#[tokio::test]
async fn a_try_after_a_drop_ends_within_a_command_timeout() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseReply).always());
    drop(guard);
    let waiting = Waiting::on(lock(&locks).acquire().wait(Duration::ZERO));
    world.pass(TIMEOUT).await;
    assert!(waiting.is_over());
    let outcome = waiting.outcome().await;
    // A release that is not answered is no taken lock.
    assert!(matches!(outcome, Err(AcquireError::Unavailable(_))), "{outcome:?}");
}
