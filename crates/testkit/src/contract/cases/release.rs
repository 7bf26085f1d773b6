//! Releasing: it ends the lease that it names and no other.

use leasehold_core::store::{HoldAnswer, ReleaseAnswer};

use crate::contract::{Scene, alice, bob, secs};

/// A release frees the lock at once, however many holds were counted.
pub(crate) async fn a_release_frees_the_lock(scene: &Scene) {
    let granted = scene.granted(alice(1)).await;
    let held = scene.hold(alice(1), granted.first, (3, 1)).await;
    assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
    assert_eq!(scene.release(alice(1), granted.first).await, ReleaseAnswer::Released);
    assert_eq!(scene.free().await, Some(granted.last));
    assert!(scene.granted(bob(1)).await.first > granted.last);
}

/// A release that names another acquisition or fence changes nothing.
pub(crate) async fn a_release_needs_id_and_fence(scene: &Scene) {
    let old = scene.granted(alice(1)).await.first;
    scene.release(alice(1), old).await;
    let fence = scene.granted(alice(2)).await.first;
    let before = scene.snapshot().await;
    for (id, fence) in [(alice(2), old), (alice(1), fence), (bob(2), fence), (alice(1), old)] {
        assert_eq!(scene.release(id, fence).await, ReleaseAnswer::Gone);
        assert_eq!(scene.keep(id, fence, secs(90)).await, ReleaseAnswer::Gone);
        scene.assert_same(&before, &scene.snapshot().await, "a release of another lease");
    }
}

/// A second release finds nothing, and does not end the next lease.
pub(crate) async fn a_second_release_is_gone_and_ends_nobody_else(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Released);
    assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Gone);
    let newer = scene.granted(bob(1)).await.first;
    assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Gone);
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.fence), (bob(1), newer));
}

/// A lease that ran out cannot be released, and is not kept either.
pub(crate) async fn a_release_of_an_expired_lease_is_gone(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.pass(secs(61)).await;
    assert_eq!(scene.keep(alice(1), fence, secs(90)).await, ReleaseAnswer::Gone);
    assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Gone);
    assert_eq!(scene.free().await, Some(fence));
}
