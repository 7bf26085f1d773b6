//! Acknowledgements: what needs them fails without them, and says so.

use std::{fmt::Debug, time::Duration};

use leasehold_core::{
    Replication, StoreError, StoreErrorKind,
    store::{AcquireAnswer, HoldAnswer, RenewAnswer},
};

use crate::contract::{Scene, alice, bob, ttl};

fn of_replicas(replicas: u8, timeout: Duration) -> Replication {
    Replication::wait(replicas, timeout).expect("in range")
}

/// So many as no subject has.
fn of_too_many() -> Replication {
    of_replicas(31, Duration::from_millis(10))
}

fn assert_unacknowledged<T: Debug>(outcome: Result<T, StoreError>) {
    let error = outcome.expect_err("no subject has so many replicas");
    assert!(error.is_unacknowledged() && error.is_answer(), "{error}");
    assert_eq!(error.kind(), StoreErrorKind::Indeterminate, "{error}");
}

/// An acquire that asks for one replica is granted once a replica has it, and so is its repeat.
pub(crate) async fn what_a_replica_has_is_granted_and_extended(scene: &Scene) {
    let calls = scene.calls().needing(of_replicas(1, Duration::from_secs(10)));
    let mut fence = None;
    for _ in 0..2 {
        match calls.acquire(alice(1), ttl(60), None).await {
            Ok(AcquireAnswer::Granted(granted)) => fence = Some(granted.first),
            other => panic!("a replica is there, and yet {other:?}"),
        }
    }
    let fence = fence.expect("it was granted");
    let held = calls.hold(alice(1), fence, (2, 1), ttl(60)).await;
    assert!(matches!(held, Ok(HoldAnswer::Held { .. })), "{held:?}");
    let renewed = calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await;
    assert!(matches!(renewed.as_deref(), Ok([RenewAnswer::Renewed { .. }])), "{renewed:?}");
}

/// A grant with too few acknowledgements is an error; once it is withdrawn, the lock is free.
pub(crate) async fn what_too_few_have_is_not_granted(scene: &Scene) {
    let needing = scene.calls().needing(of_too_many());
    for _ in 0..2 {
        assert_unacknowledged(needing.acquire(alice(1), ttl(60), None).await);
    }
    scene.calls().withdraw(alice(1)).await.expect("an answer");
    let granted = scene.granted(bob(1)).await;
    // Busy is an answer, whatever has which copy.
    let busy = needing.acquire(alice(2), ttl(60), None).await;
    match busy {
        Ok(AcquireAnswer::Busy { .. }) => {}
        // A store without replicas does not look.
        Err(error) if error.is_unacknowledged() => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.holder().await.fence, granted.first);
}

/// An extension with too few acknowledgements is an error, and the lease stays.
pub(crate) async fn what_too_few_have_is_not_extended(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    let needing = scene.calls().needing(of_too_many());
    assert_unacknowledged(needing.hold(alice(1), fence, (2, 1), ttl(60)).await);
    assert_unacknowledged(needing.renew(&[needing.renewal(alice(1), fence, ttl(60))]).await);
    assert_eq!(scene.holder().await.id, alice(1));
}
