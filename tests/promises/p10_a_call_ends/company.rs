//! Heartbeats travel together, and each has its own time to be answered.

use leasehold::error::AcquireError;
use leasehold_testkit::CommandKind;

use crate::support::{Waiting, World, millis, secs};

/// One waiter wants a lease of 100 ms; the server takes 80 ms for an answer.
#[tokio::test]
async fn a_short_ttl_leaves_the_others_their_time() {
    let world = World::new();
    let (holds, waits) = (world.another_line().runtime(1), world.runtime(2));
    let mut kept = Vec::new();
    for name in ["short", "long"] {
        kept.push(holds.lock(name).unwrap().acquire().await.unwrap());
    }
    world.slow_down(CommandKind::Heartbeat, millis(80));
    let wait = |name, ttl| Waiting::on(waits.lock(name).unwrap().acquire().ttl(ttl).wait(secs(6)));
    let (short, long) = (wait("short", millis(100)), wait("long", secs(10)));
    for _ in 0..60 {
        world.pass(millis(100)).await;
        if let Some(leasehold::store::LeaseRecord { waiters, .. }) = world.holder("long").await {
            assert!(long.is_over() || waiters.len() == 1);
        }
    }
    world.pass(millis(250)).await;
    let outcome = long.outcome().await;
    assert!(matches!(outcome, Err(AcquireError::Timeout(_))), "it is held: {outcome:?}");
    drop((short, kept));
}
