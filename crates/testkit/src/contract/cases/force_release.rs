//! Forced release: an operator ends the lease that was inspected, and no other.

use leasehold_core::store::{ForceReleaseAnswer, HoldAnswer, ReleaseAnswer, RenewAnswer};

use crate::contract::{Scene, alice, bob};

/// The inspected lease ends, and the token that comes back shuts it out of every gate.
pub(crate) async fn the_inspected_lease_is_ended_and_the_fence_moves_on(scene: &Scene) {
    let granted = scene.granted(alice(1)).await;
    let holder = scene.holder().await;
    let answer = scene.force_release(holder.id, holder.fence).await;
    let ForceReleaseAnswer::Ended { fence: Some(fence) } = answer else { panic!("{answer:?}") };
    assert!(fence > granted.last);
    assert_eq!(scene.free().await, Some(fence));
    assert!(scene.granted(bob(1)).await.first > fence);
}

/// A lease that was not inspected is not ended: not by a wrong name, nor by a late copy.
pub(crate) async fn another_lease_is_not_ended(scene: &Scene) {
    let old = scene.granted(alice(1)).await.first;
    assert!(matches!(scene.force_release(alice(1), old).await, ForceReleaseAnswer::Ended { .. }));
    let before = scene.snapshot().await;
    assert_eq!(scene.force_release(alice(1), old).await, ForceReleaseAnswer::Changed);
    scene.assert_same(&before, &scene.snapshot().await, "a copy on a free lock");
    let fence = scene.granted(alice(2)).await.first;
    let before = scene.snapshot().await;
    for (id, fence) in [(alice(1), old), (alice(2), old), (alice(1), fence), (bob(2), fence)] {
        assert_eq!(scene.force_release(id, fence).await, ForceReleaseAnswer::Changed);
        scene.assert_same(&before, &scene.snapshot().await, "a forced release of another lease");
    }
}

/// A holder whose lease was ended finds it gone, whatever it asks.
pub(crate) async fn an_ended_holder_finds_its_lease_gone(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.force_release(alice(1), fence).await;
    assert_eq!(scene.hold(alice(1), fence, (2, 1)).await, HoldAnswer::Gone);
    assert_eq!(scene.renew(alice(1), fence).await, RenewAnswer::Gone);
    assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Gone);
    assert!(!scene.withdraw(alice(1)).await);
}

/// A forced release is told to the holder's runtime, and the next waiter gets the lock with tokens
/// above the one that the operator is told, which is above the whole block of the ended lease.
pub(crate) async fn a_forced_release_is_told_and_grants_the_next(scene: &Scene) {
    let (holder, waiter) = (scene.pushes(alice(2)).await, scene.pushes(bob(1)).await);
    let fence = scene.granted(alice(1)).await.first;
    scene.release(alice(1), fence).await;
    scene.tokens_pass(2).await;
    let ended = scene.granted(alice(2)).await;
    assert!(ended.last > ended.first);
    scene.queued(bob(1)).await;
    let answer = scene.force_release(alice(2), ended.first).await;
    let ForceReleaseAnswer::Ended { fence: Some(fence) } = answer else { panic!("{answer:?}") };
    assert!(fence > ended.last);
    assert_eq!(holder.force_released().await, (alice(2), ended.first));
    let (id, granted, _) = waiter.grant().await;
    assert_eq!(id, bob(1));
    assert!(granted.first > fence);
    assert_eq!(scene.holder().await.fence, granted.first);
}
